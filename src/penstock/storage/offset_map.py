"""The last offset of every key in the dirty part of a log, in bounded memory.

Keys are kept as 16 bytes of their hash, as Kafka does: two keys with one hash would be taken for one, which does not
happen by chance. When the map is full a cleaning pass ends early and the next one goes on from there.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from penstock.kernels import OffsetTable

ENTRY_BYTES: Final = 24
NOT_FOUND: Final = -1


class OffsetMap:
    """Key to offset. `latest` is how far the log has been taken in, with keys or without."""

    __slots__ = ("_table", "keys_max", "latest")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        slots = memory_bytes // ENTRY_BYTES
        self.keys_max = int(slots * load_factor)
        assert self.keys_max > 0, "a map without room for one key never gets anywhere"
        self._table = OffsetTable(slots)
        self.latest = NOT_FOUND

    def __len__(self) -> int:
        return len(self._table)

    @property
    def full(self) -> bool:
        """Checked before each key, whether new or not, so that a pass ends at the same record every time."""
        return len(self._table) >= self.keys_max

    def put(self, key: bytes, offset: int) -> None:
        """A key's last offset so far. Offsets come in rising order."""
        self._table.put(blake2b(key, digest_size=16).digest(), offset)
        self.latest = offset

    def get(self, key: bytes) -> int:
        """The last offset of `key` in what was taken in; -1 when it is not there."""
        return self._table.get(blake2b(key, digest_size=16).digest())
