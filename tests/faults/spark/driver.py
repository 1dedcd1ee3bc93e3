"""A Spark driver as a process of its own: a topic into a lake table until the topic is drained.

`python -m tests.faults.spark.driver PLAN.json`: master, settings, source and sink options, checkpoint.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.patience import within
from tests.spark.starting import started

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 240.0


@dataclass(frozen=True)
class Plan:
    """What one driver does."""

    checkpoint: str
    source: Mapping[str, str]
    sink: Mapping[str, str]
    sink_format: str
    master: str = "local[2,4]"
    settings: Mapping[str, str] = field(default_factory=dict)

    def run(self, home: Path, timeout_s: float = TIMEOUT_S) -> int:
        """Runs it in a session of processes of its own and gives its exit code; -9 when it was killed."""
        child = self.started(home)
        try:
            return child.wait(within(timeout_s))
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()

    def started(self, home: Path) -> subprocess.Popen[bytes]:
        """The process that leads the session."""
        plan, log = home / "plan.json", home / "driver.log"
        plan.write_text(json.dumps(vars(self)))
        command = [sys.executable, "-m", "tests.faults.spark.driver", str(plan)]
        # Workers look up the sink that is struck by its module.
        modules = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        environment = {**os.environ, "PYTHONPATH": modules, "SPARK_LOCAL_IP": "127.0.0.1"}
        with log.open("ab") as out:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=environment,
                cwd=ROOT,
            )  # fmt: skip

    def drain(self, spark: object) -> None:
        """The query itself, in whatever session."""
        from pyspark.sql import SparkSession

        assert isinstance(spark, SparkSession)
        source = spark.readStream.format("penstock").options(**self.source).load()
        writer = source.writeStream.format(self.sink_format).options(**self.sink)
        query = started(writer.option("checkpointLocation", self.checkpoint).trigger(availableNow=True))
        try:
            assert query.awaitTermination(int(within(TIMEOUT_S))), "the topic was not drained in time"
        finally:
            query.stop()


def main() -> None:
    import penstock.spark
    from tests.cli.command import QUICK_JAVA
    from tests.faults.exactly.blows import BlownTopic
    from tests.faults.spark.strikes import StruckLake

    plan = Plan(**json.loads(Path(sys.argv[1]).read_text()))
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.log.level": "ERROR",
        **plan.settings,
    }
    spark = penstock.spark.session(plan.master, app_name="penstock-faults", settings=settings)
    spark.dataSource.register(StruckLake)
    spark.dataSource.register(BlownTopic)
    plan.drain(spark)
    spark.stop()


if __name__ == "__main__":
    main()
