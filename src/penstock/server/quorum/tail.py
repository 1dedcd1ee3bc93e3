"""The newest batches of the metadata log, in memory: followers are served from it whatever the disk does.

Everything that the disk does not have yet is here; of the rest as much as is likely to be asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from penstock.model.ids import Offset

BATCHES_MAX: Final = 1_024
BYTES_MAX: Final = 1 << 20


class QuorumTail:
    """Batch *i* holds offsets [`_ends[i]`, `_ends[i + 1]`)."""

    __slots__ = ("_batches", "_bytes", "_ends")

    def __init__(self, end: Offset) -> None:
        self._ends: list[Offset] = [end]
        self._batches: list[bytes] = []
        self._bytes = 0

    @property
    def start(self) -> Offset:
        """The first offset that can be read here."""
        return self._ends[0]

    def add(self, end: Offset, batch: bytes) -> None:
        self._ends.append(end)
        self._batches.append(batch)
        self._bytes += len(batch)

    def forget(self, written: Offset) -> None:
        """Lets go of the older half when there is too much, but of nothing that is not `written`."""
        if len(self._batches) <= BATCHES_MAX and self._bytes <= BYTES_MAX:
            return
        gone = 0
        while (
            gone < len(self._batches)
            and self._ends[gone + 1] <= written
            and (len(self._batches) - gone > BATCHES_MAX // 2 or self._bytes > BYTES_MAX // 2)
        ):
            self._bytes -= len(self._batches[gone])
            gone += 1
        del self._ends[:gone], self._batches[:gone]

    def read(self, offset: Offset, max_bytes: int) -> bytes | None:
        """Whole batches from the one that holds `offset`, at least one if there is one; None when that is too old."""
        if offset < self._ends[0]:
            return None
        found: list[bytes] = []
        size = 0
        for batch in self._batches[bisect_right(self._ends, offset) - 1 :]:
            size += len(batch)
            if found and size > max_bytes:
                break
            found.append(batch)
        return b"".join(found)

    def cut(self, end: Offset) -> None:
        """The log ends at `end` now, where a batch did."""
        while self._batches and self._ends[-1] > end:
            self._ends.pop()
            self._bytes -= len(self._batches.pop())
        if self._ends[-1] != end:
            self._ends, self._batches, self._bytes = [end], [], 0
