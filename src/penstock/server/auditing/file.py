"""The audit file: lines are appended, and whoever moves the file away for a new one is followed.

All of it runs in a thread: the disk may be slow, or hang.
"""

from __future__ import annotations

import os
from typing import Final

MODE: Final = 0o600


class AuditFile:
    """Two of them may append to one path: a write that is short enough for one call is one piece."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._descriptor = -1

    def append(self, lines: bytes) -> None:
        """Writes all of it, into the file that has the name now. OSError when that cannot be done."""
        self.open()
        rest = memoryview(lines)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def open(self) -> None:
        """Opens the file unless it is open; one that was moved away or removed is let go."""
        if self._descriptor >= 0 and not self._is_current():
            self.close()
        if self._descriptor < 0:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
            self._descriptor = os.open(self.path, flags, MODE)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _is_current(self) -> bool:
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._descriptor))
