"""The sparse offset index of a segment: 8 bytes an entry, the last offset of a batch and where that batch begins.

While its segment is active an index is held in two arrays and reaches the file in blocks; an index that is behind
its log is never wrong, only sparser. Sealed, it is searched on disk and one block of it at most is remembered.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right

from penstock.model.ports import File, Files

ENTRY_BYTES = 8
_ENTRY = struct.Struct(">ii")
_BLOCK_ENTRIES = 512
_PENDING_MAX = 512


class OffsetIndex:
    """Entries rise strictly in offset and position. Relative offsets fit 31 bits; the segment sees to that."""

    __slots__ = (
        "_block",
        "_block_first",
        "_file",
        "_files",
        "_fresh",
        "_offsets",
        "_positions",
        "_saved",
        "base",
        "path",
    )

    def __init__(self, files: Files, path: str, base: int) -> None:
        self._files = files
        self.path = path
        self.base = base
        self._file: File | None = None
        self._fresh = False
        # Entries in memory while active; `_saved` of them are in the file. Sealed: no arrays, `_saved` is the count.
        self._offsets: array[int] | None = None
        self._positions: array[int] | None = None
        self._saved = -1
        self._block: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        self._block_first = 0

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
        """Begins empty, in memory. What an earlier life left in the file goes when it is opened."""
        self.close()
        self._fresh = True
        self._offsets, self._positions = array("i"), array("i")
        self._block = None
        self._saved = 0

    def activate(self) -> None:
        """Loads the file into memory, to append to it. Cuts an incomplete last entry."""
        if self._offsets is not None:
            return
        data = self.file.pread(self.file.size(), 0)
        entries = struct.unpack_from(f">{len(data) // ENTRY_BYTES * 2}i", data)
        self._offsets, self._positions = array("i", entries[0::2]), array("i", entries[1::2])
        self._block = None
        self._saved = len(self._offsets)

    def __len__(self) -> int:
        if self._offsets is not None:
            return len(self._offsets)
        if self._saved < 0:
            self._saved = self.file.size() // ENTRY_BYTES
        return self._saved

    def append(self, offset: int, position: int) -> None:
        if self._offsets is None:
            self.activate()
        assert self._offsets is not None, "an active index is in memory"
        assert self._positions is not None, "both columns come and go together"
        self._offsets.append(offset - self.base)
        self._positions.append(position)
        if len(self._offsets) - self._saved >= _PENDING_MAX:
            self.save()

    def save(self) -> None:
        """Writes the entries that the file does not have yet; no sync."""
        if self._offsets is None or self._positions is None or self._saved == len(self._offsets):
            return
        entries: list[int] = [0] * (2 * (len(self._offsets) - self._saved))
        entries[0::2] = self._offsets[self._saved :]
        entries[1::2] = self._positions[self._saved :]
        self.file.pwritev((struct.pack(f">{len(entries)}i", *entries),), self._saved * ENTRY_BYTES)
        self._saved = len(self._offsets)

    def seal(self) -> None:
        """No more entries: what is in memory goes to the file and is let go."""
        self.save()
        self._offsets = self._positions = None

    def forget(self) -> None:
        """Drops the remembered block."""
        self._block = None

    def last(self) -> tuple[int, int]:
        """(offset, position) of the last entry; (base, 0) when there is none."""
        count = len(self)
        return self._entry(count - 1) if count else (self.base, 0)

    def lookup(self, offset: int) -> tuple[int, int]:
        """The largest entry whose offset is not above `offset`; (base, 0) when there is none."""
        relative = offset - self.base
        if self._offsets is not None and self._positions is not None:
            slot = bisect_right(self._offsets, relative) - 1
            return (self._offsets[slot] + self.base, self._positions[slot]) if slot >= 0 else (self.base, 0)
        return self._search(relative, 0)

    def floor(self, position: int) -> tuple[int, int]:
        """The entry with the largest batch start that is not above `position`; (base, 0) when there is none."""
        if self._offsets is not None and self._positions is not None:
            slot = bisect_right(self._positions, position) - 1
            return (self._offsets[slot] + self.base, self._positions[slot]) if slot >= 0 else (self.base, 0)
        return self._search(position, 1)

    def truncate(self, offset: int) -> None:
        """Forgets batches that end at `offset` or later."""
        self.activate()
        assert self._offsets is not None, "activate loads"
        assert self._positions is not None, "both columns come and go together"
        keep = bisect_left(self._offsets, offset - self.base)
        del self._offsets[keep:]
        del self._positions[keep:]
        self._saved = min(self._saved, keep)
        self.file.truncate(self._saved * ENTRY_BYTES)

    def doubtful(self, log_bytes: int) -> bool:
        """Whether the file cannot be the index of a log of this size, as after a preallocation or a torn write."""
        size = self.file.size()
        if size % ENTRY_BYTES:
            return True
        if not size:
            return False
        offset, position = self._entry(size // ENTRY_BYTES - 1)
        return offset <= self.base or not 0 < position < log_bytes

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._block = None

    def _entry(self, slot: int) -> tuple[int, int]:
        if self._offsets is not None and self._positions is not None:
            return self._offsets[slot] + self.base, self._positions[slot]
        relative, position = _ENTRY.unpack(self.file.pread(ENTRY_BYTES, slot * ENTRY_BYTES))
        return relative + self.base, position

    def _search(self, target: int, column: int) -> tuple[int, int]:
        """Binary search on disk by relative offset (column 0) or position (column 1), over blocks, then within one."""
        block = self._block
        if block is None or not self._inside(block[column], target):
            low, high = 0, (len(self) + _BLOCK_ENTRIES - 1) // _BLOCK_ENTRIES - 1
            while low < high:
                middle = (low + high + 1) // 2
                first = _ENTRY.unpack(self.file.pread(ENTRY_BYTES, middle * _BLOCK_ENTRIES * ENTRY_BYTES))[column]
                low, high = (middle, high) if first <= target else (low, middle - 1)
            block = self._load(low)
        slot = bisect_right(block[column], target) - 1
        return (block[0][slot] + self.base, block[1][slot]) if slot >= 0 else (self.base, 0)

    def _inside(self, values: tuple[int, ...], target: int) -> bool:
        """Whether the answer for `target` is surely in the remembered block."""
        if not values:
            return len(self) == 0
        first = self._block_first == 0 or values[0] <= target
        return first and (target <= values[-1] or self._block_first + len(values) == len(self))

    def _load(self, block: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        data = self.file.pread(_BLOCK_ENTRIES * ENTRY_BYTES, block * _BLOCK_ENTRIES * ENTRY_BYTES)
        entries = struct.unpack_from(f">{len(data) // ENTRY_BYTES * 2}i", data)
        self._block_first = block * _BLOCK_ENTRIES
        self._block = (entries[0::2], entries[1::2])
        return self._block
