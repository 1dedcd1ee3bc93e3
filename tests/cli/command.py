"""Runs `penstock …` as a process and keeps what it said."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli import warm
from tests.compat.processes import Child, wait_for
from tests.patience import Patience

PENSTOCK = [sys.executable, "-m", "penstock.cli.main"]
DEADLINE_S = 60.0
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""For JDK_JAVA_OPTIONS: a smaller JVM that compiles less and trusts its jars, for one that lives for seconds."""


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def penstock(
    *arguments: str | Path, stdin: str = "", cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Said:
    """The end of a command that ends by itself."""
    code, out, err = warm.run(
        list(map(str, arguments)),
        stdin=stdin,
        cwd=cwd,
        environment={**os.environ, **(environment or {})},
        over=Patience(DEADLINE_S).over,
    )
    assert "Traceback" not in err, err
    return Said(code, out, err)


class Running:
    """A command that runs until it is told to stop; a context manager that leaves no process behind."""

    def __init__(self, *arguments: str | Path, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._child = Child([*PENSTOCK, *map(str, arguments)], log, environment)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.running()

    @property
    def words(self) -> str:
        """Everything it has said, on both streams."""
        return self._child.log.read_text(errors="replace")

    def wait_to_say(self, pattern: str) -> re.Match[str]:
        def probe() -> re.Match[str] | None:
            found = re.search(pattern, self.words)
            assert found or self._child.running(), f"it ended without saying {pattern!r}:\n{self.words}"
            return found

        return wait_for(f"{pattern!r} in the output", probe, timeout_s=DEADLINE_S)

    def send(self, number: signal.Signals) -> None:
        os.kill(self._child.pid, number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        self.send(number)
        return self._child.wait(DEADLINE_S)
