"""The aborted transactions of a segment: 34 bytes each, in the order of their abort markers. Most have none."""

from __future__ import annotations

import struct
from typing import NamedTuple

from penstock.model.errors import Corrupt
from penstock.model.ports import File, Files

ENTRY_BYTES = 34
_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """Records of `producer_id` in [first, last] are void; `last` is the offset of the abort marker."""

    producer_id: int
    first: int
    last: int
    last_stable: int


class TransactionIndex:
    """The file is made with the first entry."""

    __slots__ = ("_count", "_file", "_files", "confirmed", "path", "present")

    def __init__(self, files: Files, path: str, present: bool) -> None:
        self._files = files
        self.path = path
        self.present = present
        # Whether the entries that were in the file when it was opened are known to be those of the log.
        self.confirmed = not present
        self._file: File | None = None
        self._count = -1

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            self.present = True
        return self._file

    def append(self, aborted: AbortedTransaction) -> None:
        if self._count < 0:
            self._count = self.file.size() // ENTRY_BYTES
        self.file.pwritev((_ENTRY.pack(_VERSION, *aborted),), self._count * ENTRY_BYTES)
        self._count += 1

    def entries(self) -> list[AbortedTransaction]:
        if not self.present:
            return []
        data = self.file.pread(self.file.size(), 0)
        entries = []
        for position in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
            version, *fields = _ENTRY.unpack_from(data, position)
            if version > _VERSION:
                raise Corrupt(self.path, position, f"version {version} of an aborted transaction is unknown")
            entries.append(AbortedTransaction(*fields))
        return entries

    def collect(self, first: int, end: int, found: list[AbortedTransaction]) -> bool:
        """Adds the transactions that touch [first, end). True when no later segment can have more of them."""
        for aborted in self.entries():
            if aborted.last >= first and aborted.first < end:
                found.append(aborted)
            if aborted.last_stable >= end:
                return True
        return False

    def truncate(self, offset: int) -> None:
        """Forgets transactions whose marker lies at `offset` or later."""
        if not self.present:
            return
        keep = sum(1 for aborted in self.entries() if aborted.last < offset)
        self.file.truncate(keep * ENTRY_BYTES)
        self._count = keep

    def start_over(self) -> None:
        self.confirmed = True
        if self.present:
            self.file.truncate(0)
            self._count = 0

    def doubtful(self) -> bool:
        return self.present and self.file.size() % ENTRY_BYTES != 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
