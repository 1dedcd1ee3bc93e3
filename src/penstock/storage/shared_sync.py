"""One sync for many files: the volume's. Python has no names for the calls that this needs.

A sync of N files makes the disk empty its cache N times, and the file system commit its journal nearly as often; a
sync of the whole volume does both once (64 files of 16 KB: 2.7 ms where one by one takes 16 ms). But it also writes
whatever else is waiting to be written on the volume, so it is for moments when that is little.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

FILES_MIN = 3
DIRTY_PER_FILE_MAX_BYTES = 256 * 1024
"""Up to here writing what others left costs less than the single syncs that it saves."""
REPORTS_LOST_WRITES_SINCE = (5, 8)
"""Before this kernel a sync of a volume kept silent about writes that had failed."""
_DIRTY_KNOWN_MS = 20
"""How long what was read of the machine's memory holds: reading it costs as much as serving a request."""
_SYNC_FILE_RANGE_WRITE = 2


class Volume:
    """The volume that a directory lies on, watched from now on.

    The kernel tells each open descriptor once of a write that failed since it was opened. So one is held open for this
    alone, and after the first error every file is asked by itself, for good: the error may be about a file that nobody
    has asked about yet.
    """

    __slots__ = ("_descriptor", "_dirty_bytes", "_dirty_until", "device")

    def __init__(self, directory: str) -> None:
        self._descriptor, self.device = -1, -1
        self._dirty_bytes, self._dirty_until = 0, float("-inf")
        if _reports_lost_writes():
            try:
                self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                return  # a directory in memory, or one that is gone: its files are synced one by one
            self.device = os.fstat(self._descriptor).st_dev

    def pays(self, files: int, now_ms: float) -> bool:
        """Whether one sync of everything is cheaper than one of each of so many files. Costs next to nothing.

        `now_ms` is of a clock that only goes forward.
        """
        if self._descriptor < 0 or files < FILES_MIN:
            return False
        if now_ms >= self._dirty_until:
            self._dirty_bytes, self._dirty_until = dirty_bytes(), now_ms + _DIRTY_KNOWN_MS
        return self._dirty_bytes <= files * DIRTY_PER_FILE_MAX_BYTES

    def sync(self) -> bool:
        """Makes every file of the volume durable. False when that cannot be had: then each must be asked.

        For a thread, and one at a time.
        """
        if self._descriptor < 0:
            return False
        if _libc().syncfs(self._descriptor) == 0:
            return True
        self.close()
        return False

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def start_writing(descriptor: int) -> None:
    """The kernel begins to write the file to disk; nobody waits for it. An error shows at the next sync."""
    _libc().sync_file_range(descriptor, _offset(0), _offset(0), _SYNC_FILE_RANGE_WRITE)


def dirty_bytes() -> int:
    """What the machine has in memory and not yet on its disks."""
    try:
        found = os.pread(_memory_facts(), 4096, 0)
    except OSError:
        return 1 << 62
    return _kilobytes(found, b"\nDirty:") + _kilobytes(found, b"\nWriteback:")


def _kilobytes(facts: bytes, name: bytes) -> int:
    at = facts.find(name)
    return int(facts[at + len(name) :].split(None, 1)[0]) * 1024 if at >= 0 else 1 << 62


@cache
def _memory_facts() -> int:
    return os.open("/proc/meminfo", os.O_RDONLY | os.O_CLOEXEC)


@cache
def _reports_lost_writes() -> bool:
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return (
        os.uname().sysname == "Linux"
        and all(map(str.isdigit, numbers))
        and (tuple(map(int, numbers)) >= REPORTS_LOST_WRITES_SINCE)
    )


@cache
def _libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _offset(value: int) -> Any:
    import ctypes

    return ctypes.c_int64(value)
