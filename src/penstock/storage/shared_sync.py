"""One sync for many files: the volume's. Python has no names for the calls that this needs.

A sync of N files makes the disk empty its cache N times, and the file system commit its journal nearly as often; a
sync of the whole volume does both once (64 files of 16 KB: 2.7 ms where one by one takes 16 ms). But it also writes
whatever else is waiting to be written on the volume, so it is for moments when that is little.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

FILES_MIN = 3
DIRTY_PER_FILE_MAX_BYTES = 256 * 1024
"""Up to here writing what others left costs less than the single syncs that it saves."""
REPORTS_LOST_WRITES_SINCE = (5, 8)
"""Before this kernel a sync of a volume kept silent about writes that had failed."""
_SYNC_FILE_RANGE_WRITE = 2


def sync_volume_of(descriptors: Sequence[int]) -> bool:
    """Makes all these files durable by one sync of their volume. False when that cannot be had, or would not pay."""
    if len(descriptors) < FILES_MIN or not _reports_lost_writes():
        return False
    if dirty_bytes() > len(descriptors) * DIRTY_PER_FILE_MAX_BYTES:
        return False
    if len({os.fstat(descriptor).st_dev for descriptor in descriptors}) > 1:
        return False
    # An error may be about anybody's file: then each of ours is asked by itself.
    return bool(_libc().syncfs(descriptors[0]) == 0)


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
