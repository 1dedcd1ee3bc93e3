"""The time index of a segment: 12 bytes an entry, the largest timestamp so far and the offset that has it.

An entry says that no record up to and including its offset is newer than its timestamp. Timestamps and offsets rise.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.model.ports import File, Files

ENTRY_BYTES = 12
NO_TIMESTAMP = -1
_ENTRY = struct.Struct(">qi")
_PENDING_MAX = 512 * ENTRY_BYTES


class TimestampOffset(NamedTuple):
    """A timestamp and the last offset of the batch that brought it."""

    timestamp: int
    offset: int


class TimeIndex:
    """Only the last entry is held in memory; new entries reach the file in blocks."""

    __slots__ = ("_count", "_file", "_files", "_fresh", "_last", "_pending", "base", "path")

    def __init__(self, files: Files, path: str, base: int) -> None:
        self._files = files
        self.path = path
        self.base = base
        self._file: File | None = None
        self._fresh = False
        # Entries in the file; -1 until somebody asks. `_pending` holds the bytes of those after them.
        self._count = -1
        self._pending = b""
        self._last: TimestampOffset | None = None

    @property
    def file(self) -> File:
        """Made when it is first needed: a partition that nobody writes to should not cost files."""
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            if self._fresh and self._file.size():
                self._file.truncate(0)
            self._fresh = False
        return self._file

    def start_over(self) -> None:
        """Begins empty. What an earlier life left in the file goes when it is opened."""
        self.close()
        self._fresh = True
        self._count = 0
        self._pending = b""
        self._last = TimestampOffset(NO_TIMESTAMP, self.base)

    def __len__(self) -> int:
        if self._count < 0:
            self._count = self.file.size() // ENTRY_BYTES
        return self._count + len(self._pending) // ENTRY_BYTES

    def last(self) -> TimestampOffset:
        """The last entry; no timestamp and the base offset when there is none."""
        if self._last is None:
            count = len(self)
            self._last = self._entry(count - 1) if count else TimestampOffset(NO_TIMESTAMP, self.base)
        return self._last

    def append_if_larger(self, timestamp: int, offset: int) -> None:
        """Adds an entry when it is newer than the last one; an equal timestamp adds nothing."""
        if timestamp <= (self._last or self.last()).timestamp:
            return
        if self._count < 0:
            len(self)
        self._pending += _ENTRY.pack(timestamp, offset - self.base)
        self._last = TimestampOffset(timestamp, offset)
        if len(self._pending) >= _PENDING_MAX:
            self.save()

    def save(self) -> None:
        if self._pending:
            self.file.pwritev((self._pending,), self._count * ENTRY_BYTES)
            self._count += len(self._pending) // ENTRY_BYTES
            self._pending = b""

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The newest entry that is not after `timestamp`: what is wanted lies behind it."""
        self.save()
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._entry(middle).timestamp <= timestamp else (low, middle)
        return self._entry(low - 1) if low else TimestampOffset(NO_TIMESTAMP, self.base)

    def truncate(self, offset: int) -> None:
        """Forgets entries that name `offset` or a later one."""
        self.save()
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._entry(middle).offset < offset else (low, middle)
        self.file.truncate(low * ENTRY_BYTES)
        self._count = low
        self._last = None

    def doubtful(self) -> bool:
        size = self.file.size()
        if size % ENTRY_BYTES:
            return True
        if not size:
            return False
        # Timestamps rise, so zeros at the end of several entries are space that was preallocated and never used.
        count = size // ENTRY_BYTES
        last = self._entry(count - 1)
        return last.offset < self.base or (count > 1 and last.timestamp <= max(0, self._entry(0).timestamp))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _entry(self, slot: int) -> TimestampOffset:
        timestamp, relative = _ENTRY.unpack(self.file.pread(ENTRY_BYTES, slot * ENTRY_BYTES))
        return TimestampOffset(timestamp, relative + self.base)
