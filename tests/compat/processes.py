"""Child processes that are always stopped by their own id, and waiting for conditions with a deadline."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.leftovers import note_process
from tests.patience import TimedOut, wait_for

__all__ = ["Child", "TimedOut", "free_ports", "wait_for"]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that were free just now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Child:
    """One process that writes what it says to a file. Always `stop` or `kill` it, best in a `finally`."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        note_process(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> int:
        """Waits until the process ends by itself and returns its exit code; one that does not end is killed."""
        try:
            wait_for("an end", lambda: not self.running(), timeout_s=timeout_s, pause_s=0.005)
        except TimedOut:
            self.kill()
            raise TimedOut(f"{self.command[0]} did not end within {timeout_s} s\n{self.tail()}") from None
        return self._process.wait()

    def stop(self, timeout_s: float = 60) -> int:
        """Asks the process to end and returns its exit code."""
        if self.running():
            self._process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def kill(self) -> None:
        """kill -9, and waits until the process is gone."""
        if self.running():
            self._process.kill()
        self._process.wait()

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
