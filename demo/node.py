"""A node as its own process: started, killed with kill -9, started again, stopped."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from types import TracebackType

STOP_DEADLINE_S = 30.0


class NodeFailed(Exception):
    """The node did not come up, or did not end well."""


class Node:
    """`penstock dev` on a directory. The port is chosen at the first start and kept."""

    def __init__(self, data_dir: str) -> None:
        self._data_dir = data_dir
        self._process: subprocess.Popen[str] | None = None
        self._port = "0"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Starts the node; answers how many seconds it took until it said that it is ready."""
        began = time.monotonic()
        # On a busy machine the node would tell of its own late timers, in the middle of our bars.
        arguments = ("dev", "--log-level", "error")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli.main", *arguments, "--port", self._port, "--data-dir", self._data_dir],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"bootstrap\s+127\.0\.0\.1:(\d+)", line)
            if found:
                self._port = found[1]
                return time.monotonic() - began
        raise NodeFailed("the node did not come up; its words are above")

    def kill(self) -> None:
        """kill -9: no flush, no farewell."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        code = self._end(signal.SIGTERM)
        if code:
            raise NodeFailed(f"the node ended with code {code}")

    def memory_mb(self) -> float:
        """Resident memory."""
        assert self._process is not None, "the node runs"
        with open(f"/proc/{self._process.pid}/status", encoding="ascii") as status:
            found = re.search(r"VmRSS:\s+(\d+) kB", status.read())
        return int(found[1]) / 1024 if found else 0.0

    def __enter__(self) -> Node:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None, "the node runs"
        process.send_signal(number)
        try:
            code = process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return code
