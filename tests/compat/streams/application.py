"""Processes of the word count, each with its own directory of state."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.compat.processes import Child, wait_for
from tests.compat.streams import jars
from tests.patience import within

SOURCE = Path(__file__).with_name("WordCount.java")
AT_LEAST_ONCE, EXACTLY_ONCE = "at_least_once", "exactly_once_v2"
ROCKSDB, MEMORY = "rocksdb", "memory"
START_S = 90.0


@cache
def compiled(folder: Path) -> str:
    """The class path of the application, which is compiled into the folder once."""
    libraries = jars.class_path()
    done = subprocess.run(
        ["javac", "-d", str(folder), "-cp", libraries, str(SOURCE)],
        capture_output=True,
        text=True,
        timeout=within(120),
    )
    assert done.returncode == 0, done.stderr
    return f"{folder}:{libraries}"


class Plan(NamedTuple):
    """What all instances of one application have in common."""

    bootstrap: str
    lines: str
    counts: str
    application: str
    guarantee: str
    store: str
    home: Path

    @property
    def changelog(self) -> str:
        """The topic that the store is restored from."""
        return f"{self.application}-counts-changelog"

    @property
    def repartition(self) -> str:
        """The topic that brings each word to who counts it."""
        return f"{self.application}-words-repartition"


class Instance:
    """One process. It keeps its directory from one life to the next, and so its transactional id."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan, self.name = plan, name
        self.state = plan.home / name
        self.log = plan.home / f"{name}.log"
        self.child: Child | None = None
        self._read_from = 0

    def start(self) -> None:
        assert self.child is None, f"{self.name} runs already"
        plan = self.plan
        self._read_from = self.log.stat().st_size if self.log.exists() else 0
        words = [plan.bootstrap, plan.lines, plan.counts, plan.application, plan.guarantee, plan.store, str(self.state)]
        command = [
            "java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
            "-cp", compiled(plan.home / "classes"), "WordCount", *words,
        ]  # fmt: skip
        self.child = Child(command, self.log)

    def wait_until_running(self) -> None:
        """Returns when it has taken part in a rebalance and works."""

        def runs() -> bool:
            self.assert_lives()
            with self.log.open(errors="replace") as said:
                said.seek(self._read_from)
                return "REBALANCING -> RUNNING" in said.read()

        wait_for(f"{self.name} to run", runs, timeout_s=START_S)

    def assert_lives(self) -> None:
        assert self.child is not None, f"{self.name} was not started"
        assert self.child.running(), f"{self.name} ended:\n{self.child.tail(60)}"

    def kill(self) -> None:
        """kill -9."""
        child, self.child = self.child, None
        if child is not None:
            child.kill()

    def stop(self) -> None:
        """As its operator would: what is open is committed, and it leaves its group."""
        child, self.child = self.child, None
        # A JVM that was asked to end by a signal says so with its exit code.
        assert child is not None
        assert child.stop() == 128 + 15, f"{self.name} failed:\n{child.tail(60)}"
