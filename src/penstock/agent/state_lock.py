"""One agent for one state directory: two would overwrite each other's positions."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from penstock.agent.errors import AgentError, StateInUse

LOCK_FILE = "agent.lock"


class StateLock:
    """Held from `take` to `release`, or until this process ends in whatever way."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._descriptor = -1

    def take(self) -> None:
        """Makes the directory if it is not there. StateInUse names the one who has it."""
        path = self._state_dir / LOCK_FILE
        try:
            self._state_dir.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as wrong:
            raise AgentError(f"the state directory {self._state_dir} cannot be used: {wrong.strerror}") from wrong
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StateInUse(self._state_dir, int(holder) if holder.isdecimal() else None) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1
