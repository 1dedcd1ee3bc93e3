"""What the demo starts beside the nodes: each a process group of its own, known by its id, ended with certainty."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.model.errors import PenstockError
from penstock.processes import birth_of, is_running

LOOK_EVERY_S: Final = 0.05
GONE_WITHIN_S: Final = 10.0
TAIL_LINES: Final = 12
KEPT_FILE: Final = "demo.json"

# -P keeps whatever lies in the current directory from being taken for a module of ours.
PYTHON: Final = (sys.executable, "-P", "-m")
PENSTOCK: Final = (*PYTHON, "penstock.cli.main")


class DemoFailed(PenstockError):
    """The story cannot go on; says what happened and what the log says."""


class Actor:
    """One process. Its group is its own, so a Ctrl-C in the terminal reaches it only through us."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command, self._folder = list(command), folder
        self._environment = {**os.environ, **(environment or {})}
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as out:
            self._child = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._child is not None, f"{self.name} was started"
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def check(self) -> None:
        """`DemoFailed` with its last words if it has ended by itself."""
        if self._child is not None and self._child.poll() is not None:
            raise DemoFailed(
                f"the {self.name} ended with code {self._child.returncode}; its log ends with:\n{self.last_words()}"
            )

    def last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:]) or "  it said nothing"

    def ask_to_end(self) -> None:
        if self.alive:
            os.kill(self.pid, signal.SIGTERM)

    def wait(self, patience_s: float) -> bool:
        """Whether it ended by itself in that time."""
        if self._child is None:
            return True
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(patience_s)
        return self._child.poll() is not None

    def kill_and_start(self) -> int:
        """kill -9, and another one in its place; the id of the one that is gone. Nobody sees it missing meanwhile."""
        assert self._child is not None, f"{self.name} was started"
        gone = self._child
        gone.kill()
        gone.wait(GONE_WITHIN_S)
        self.start()
        return gone.pid

    def end(self, patience_s: float) -> None:
        """Asks, waits, and then kills what is left of its group."""
        if self._child is None:
            return
        self.ask_to_end()
        self.wait(patience_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait(GONE_WITHIN_S)


def remember(folder: Path, actors: Sequence[Actor]) -> None:
    """What stays behind with --keep, so that `penstock dev stop` finds it. An id counts with when it began."""
    kept = [{"name": each.name, "pid": each.pid, "born": birth_of(each.pid)} for each in actors if each.alive]
    (folder / KEPT_FILE).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def end_remembered(folder: Path, patience_s: float) -> list[str]:
    """Ends what `remember` wrote down of a folder, if it still runs; the names of what ended."""
    path = folder / KEPT_FILE
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    running = [each for each in kept if each["born"] and is_running(each["pid"], each["born"])]
    for each in running:
        with suppress(ProcessLookupError):
            os.kill(each["pid"], signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    for each in running:
        while is_running(each["pid"], each["born"]) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        if is_running(each["pid"], each["born"]):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(each["pid"], signal.SIGKILL)
    path.unlink(missing_ok=True)
    return [str(each["name"]) for each in running]
