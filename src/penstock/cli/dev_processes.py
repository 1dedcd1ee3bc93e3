"""The node processes of `penstock dev --nodes N`: found by their pid files, started, signalled, waited for.

A pid file alone proves nothing: the number may belong to another program by now. So a process counts as node I of a
folder only if its command line says so, and nothing else is ever signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.model.errors import PenstockError
from penstock.processes import command_line

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
GONE_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.02
TAIL_LINES = 12
READY = " is ready on "
"""What `penstock server start` says when it serves."""


class NodeProcess:
    """Node `node_id` of a folder: its configuration, log and pid file, and the process if there is one."""

    def __init__(self, folder: Path, node_id: int) -> None:
        self.node_id = node_id
        self.config = folder / f"node-{node_id}.properties"
        self.log = folder / f"node-{node_id}.log"
        self._pid_file = folder / f"node-{node_id}.pid"
        self._child: subprocess.Popen[bytes] | None = None
        self._log_begins = 0

    @property
    def pid(self) -> int | None:
        """The process that is this node now, whoever started it."""
        if self._child is not None:
            self._child.poll()  # one that has ended is no process any more once it is asked for its end
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return None
        return pid if str(self.config) in command_line(pid) else None

    def start(self, *, log_level: str, log_format: str) -> None:
        """Starts the process; it outlives whoever starts it and hears nothing of a Ctrl-C in its terminal."""
        with self.log.open("ab") as out:
            self._log_begins = out.tell()
            self._child = subprocess.Popen(
                [
                    sys.executable, "-P", "-m", "penstock.cli.main", "server", "start", "--config", str(self.config),
                    "--log-level", log_level, "--log-format", log_format,
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._pid_file.write_text(f"{self._child.pid}\n")

    def is_ready(self) -> bool:
        """Whether the process that was started here serves; PenstockError with its last words if it has ended."""
        with self.log.open("rb") as file:
            file.seek(self._log_begins)
            said = file.read().decode(errors="replace")
        if READY in said:
            return True
        if self._child is not None and self._child.poll() is not None:
            words = "\n".join(said.splitlines()[-TAIL_LINES:]) or "it said nothing"
            raise PenstockError(f"node {self.node_id} has ended while it started; {self.log} ends with:\n{words}")
        return False

    def signal(self, number: signal.Signals) -> int | None:
        """Sends a signal and answers whom it was sent to."""
        pid = self.pid
        if pid is not None:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return None
        return pid

    def forget(self) -> None:
        """The process is gone, and so is its pid file."""
        self._pid_file.unlink(missing_ok=True)


def wait_ready(
    nodes: Iterable[NodeProcess],
    timeout_s: float = READY_TIMEOUT_S,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Returns when all serve clients, or when it is `stopping`. PenstockError names those that do not in time."""
    pending = list(nodes)

    def all_ready() -> bool:
        pending[:] = [node for node in pending if not node.is_ready()]
        return not pending or stopping()

    if not wait_until(all_ready, timeout_s):
        names = ", ".join(str(node.node_id) for node in pending)
        raise PenstockError(
            f"node {names} does not serve after {timeout_s:.0f} s; {pending[0].log} may say why."
            " It goes on trying: does a majority of the first nodes run?"
        )


def stop_all(nodes: Iterable[NodeProcess], again: Callable[[], bool] = lambda: False) -> None:
    """Asks all to stop cleanly and waits. `again` tells that somebody is impatient: then they end at once."""
    stopping = [node for node in nodes if node.signal(signal.SIGTERM) is not None]
    hurried = False

    def all_gone() -> bool:
        nonlocal hurried
        if again() and not hurried:
            hurried = True
            for node in stopping:
                node.signal(signal.SIGTERM)
        return all(node.pid is None for node in stopping)

    if not wait_until(all_gone, STOP_TIMEOUT_S):
        for node in stopping:
            node.signal(signal.SIGKILL)
        wait_until(all_gone, GONE_TIMEOUT_S)
    for node in stopping:
        node.forget()


def kill(node: NodeProcess) -> int | None:
    """kill -9; returns the process id when it is gone, None when there was none."""
    pid = node.signal(signal.SIGKILL)
    if pid is not None and not wait_until(lambda: node.pid is None, GONE_TIMEOUT_S):
        raise PenstockError(f"process {pid} of node {node.node_id} does not go away, not even for kill -9")
    node.forget()
    return pid


def wait_until(probe: Callable[[], bool], timeout_s: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + timeout_s
    while not probe():
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True
