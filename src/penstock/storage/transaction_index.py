"""The aborted transactions of a segment: 34 bytes each, in the order of their abort markers. Most have none."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.errors import Corrupt
from penstock.model.ports import File, Files

ENTRY_BYTES = 34
_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
_ENTRIES_AT_ONCE = 120


class AbortedTransaction(NamedTuple):
    """Records of `producer_id` in [first, last] are void; `last` is the offset of the abort marker."""

    producer_id: int
    first: int
    last: int
    last_stable: int


class Scan(NamedTuple):
    """What a search found: entries that follow each other from number `begin` on.

    `complete` says that no later segment can have more of them.
    """

    begin: int
    entries: list[AbortedTransaction]
    complete: bool


class TransactionIndex:
    """The file is made with the first entry."""

    __slots__ = ("_count", "_file", "_files", "confirmed", "in_order", "path", "present", "vouched")

    def __init__(self, files: Files, path: str, present: bool) -> None:
        self._files = files
        self.path = path
        self.present = present
        # Whether the entries that were in the file when it was opened are known to be those of the log.
        self.confirmed = self.in_order = not present
        # Of the others, those that were held against the log.
        self.vouched = range(0)
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
        return [AbortedTransaction(*fields[1:]) for fields in self._fields()]

    def is_in_order(self, base: int) -> bool:
        """Whether the entries could be those of a segment that begins at `base`.

        Each marker lies behind the last, and each transaction before its marker and behind its producer's last one.
        """
        if self.doubtful():
            return False
        before = base - 1
        ended: dict[int, int] = {}
        try:
            for _, producer_id, first, last, last_stable in self._fields():
                if not ended.get(producer_id, -1) < first < last or last <= before or last_stable > last + 1:
                    return False
                before = ended[producer_id] = last
        except Corrupt:
            return False
        return True

    def _fields(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Version, producer id and offsets of every entry, as they are in the file."""
        data = self.file.pread(self.file.size(), 0) if self.present else b""
        whole = memoryview(data)[: len(data) - len(data) % ENTRY_BYTES]
        for number, fields in enumerate(_ENTRY.iter_unpack(whole)):
            if fields[0] > _VERSION:
                position = number * ENTRY_BYTES
                raise Corrupt(self.path, position, f"version {fields[0]} of an aborted transaction is unknown")
            yield fields

    def scan(self, first: int, end: int) -> Scan:
        """The entries that may touch [first, end), and the one before them.

        There may be very many: they are looked for by halves, and read a page at a time.
        """
        if not self.present:
            return Scan(0, [], False)
        count = self.file.size() // ENTRY_BYTES
        at = bisect_left(range(count), first, key=self._last_of)
        begin = max(0, at - 1)
        found = self._read(begin, at - begin)
        while at < count:
            for entry in self._read(at, min(_ENTRIES_AT_ONCE, count - at)):
                found.append(entry)
                if entry.last_stable >= end:
                    return Scan(begin, found, True)
                at += 1
        return Scan(begin, found, False)

    def _last_of(self, index: int) -> int:
        return self._read(index, 1)[0].last

    def _read(self, index: int, count: int) -> list[AbortedTransaction]:
        data = self.file.pread(count * ENTRY_BYTES, index * ENTRY_BYTES)
        return [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(data)]

    def vouch(self, indexes: range) -> None:
        """These entries are the log's. A reader goes on from there, so that one run of entries is remembered."""
        known = self.vouched
        if known and indexes.start <= known.stop and known.start <= indexes.stop:
            indexes = range(min(known.start, indexes.start), max(known.stop, indexes.stop))
        self.vouched = indexes

    def truncate(self, offset: int) -> None:
        """Forgets transactions whose marker lies at `offset` or later."""
        if not self.present:
            return
        keep = sum(1 for aborted in self.entries() if aborted.last < offset)
        self.file.truncate(keep * ENTRY_BYTES)
        self._count = keep
        self.vouched = range(min(self.vouched.start, keep), min(self.vouched.stop, keep))

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
