"""A Spark standalone cluster on the loopback from what pip installed: a master and two workers, as in the guide."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Self

import pyspark

from tests.compat.processes import Child, free_ports, wait_for
from tests.faults.spark.driver import ROOT

WORKERS = 2
START_TIMEOUT_S = 90


class Standalone:
    """One master, two workers with a core each. Executors find our modules on their PYTHONPATH."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._children: list[Child] = []
        self._port, self._web, *self._worker_ports = free_ports(2 + 2 * WORKERS)
        self.master = f"spark://127.0.0.1:{self._port}"

    def settings(self) -> dict[str, str]:
        """What an application needs to run here; each executor has one core, so that there are two."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.cores.max": str(WORKERS),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }

    def start(self) -> None:
        self._run("master", "org.apache.spark.deploy.master.Master", "--port", self._port, "--webui-port", self._web)
        self._wait("master", "I have been elected leader")
        for number in range(WORKERS):
            port, web = self._worker_ports[2 * number : 2 * number + 2]
            name = f"worker-{number + 1}"
            # Spark races two attempts at a task on different hosts only; all of 127.0.0.0/8 is this one.
            self._run(
                name, "org.apache.spark.deploy.worker.Worker", "--port", port, "--webui-port", web,
                "--cores", 1, "--memory", "2g", "--work-dir", self._home / name, self.master,
                host=f"127.0.0.{number + 1}",
            )  # fmt: skip
        for number in range(WORKERS):
            self._wait(f"worker-{number + 1}", "Successfully registered with master")

    def stop(self) -> None:
        for child in reversed(self._children):
            child.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, name: str, main: str, *words: object, host: str = "127.0.0.1") -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(home / "bin" / "spark-class"), main, "--host", host, *map(str, words)]
        self._children.append(Child(command, self._home / f"{name}.log", environment))

    def _wait(self, name: str, words: str) -> None:
        log = self._home / f"{name}.log"
        wait_for(f"{name}: {words}", lambda: words in log.read_text(errors="replace"), timeout_s=START_TIMEOUT_S)
