"""The last offset of every key in the dirty part of a log, in bounded memory.

Keys are kept as 16 bytes of their hash, as Kafka does: two keys with one hash would be taken for one, which does not
happen by chance. When the map is full a cleaning pass ends early and the next one goes on from there.
"""

from __future__ import annotations

from typing import Final

from penstock.kernels import OffsetTable

ENTRY_BYTES: Final = 24
NOT_FOUND: Final = -1


class OffsetMap:
    """Key to offset. `latest` is how far the log has been taken in, with keys or without."""

    __slots__ = ("_table", "get", "keys_max", "latest")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        slots = memory_bytes // ENTRY_BYTES
        self.keys_max = int(slots * load_factor)
        assert self.keys_max > 0, "a map without room for one key never gets anywhere"
        self._table = OffsetTable(slots)
        self.get = self._table.get
        """The last offset of a key in what was taken in; -1 when it is not there."""
        self.latest = NOT_FOUND

    def __len__(self) -> int:
        return len(self._table)

    def take_in(self, entries: list[tuple[bytes, int]], end: int) -> bool:
        """Notes the keys of a batch that ends before offset `end`; entries come in rising order of their offsets.

        False when there was no room for all of them: then `latest` is the last one that went in. Room is asked for
        before each key, new or not, so that a pass ends at the same record whatever it met before.
        """
        table, keys_max, put = self._table, self.keys_max, self._table.put
        for key, offset in entries:
            if len(table) >= keys_max:
                return False
            put(key, offset)
            self.latest = offset
        self.reach(end)
        return True

    def reach(self, end: int) -> None:
        """Everything below `end` was taken in."""
        if end > self.latest + 1:
            self.latest = end - 1
