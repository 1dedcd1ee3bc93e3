"""A pipeline's driver as a process of its own, whose lake sinks are struck.

`python -m tests.faults.spark.flow_driver FILE SINK '{"strike.point": …}'`
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from penstock.spark.pipeline import building
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner
from penstock.spark.pipeline.wiring import lake_options, once_settings
from tests.faults.spark.driver import ROOT, TIMEOUT_S
from tests.faults.spark.strikes import STRUCK_FORMAT, Strike, StruckLake
from tests.patience import within


def run_struck(file: Path, sink: str, strike: Strike, state_home: Path, log: Path) -> int:
    """One driver with a disk of its own; its exit code, -9 when it was killed."""
    command = [sys.executable, "-m", "tests.faults.spark.flow_driver", str(file), sink, json.dumps(strike.options())]
    modules = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    environment = {
        **os.environ,
        "PYTHONPATH": modules,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "XDG_STATE_HOME": str(state_home),
    }
    with log.open("ab") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=environment, cwd=ROOT
        )
    try:
        return child.wait(within(TIMEOUT_S))
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def strike_sink(name: str, blow: dict[str, str]) -> None:
    """Tables are written by the sink that is struck, which that one sink's options tell when."""

    def options(flow: Flow, sink: Sink) -> dict[str, str]:
        return {**lake_options(flow, sink), **(blow if sink.name == name else {})}

    building.LAKE_FORMAT = STRUCK_FORMAT  # type: ignore[misc]
    building.lake_options = options  # type: ignore[assignment]


def main() -> None:
    import penstock.spark
    from tests.cli.command import QUICK_JAVA

    flow = read_flow(Path(sys.argv[1])).once()
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.log.level": "ERROR",
        **once_settings(flow),
        **flow.spark.settings,
    }
    spark = penstock.spark.session("local[2,4]", app_name="penstock-flow-faults", settings=settings)
    spark.dataSource.register(StruckLake)
    strike_sink(sys.argv[2], json.loads(sys.argv[3]))
    runner = Runner(flow, spark, patience=Patience(tries=1))
    runner.run(threading.Event())
    sys.exit(f"nothing struck: {runner.progress()}")


if __name__ == "__main__":
    main()
