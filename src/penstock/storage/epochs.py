"""The leader epochs of a log: which epoch began at which offset. Replicas find with it where their logs part.

Changes are kept in memory and reach `leader-epoch-checkpoint` with the next flush, always before the recovery point
passes them; what a crash takes is found again in the batches behind the recovery point.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from penstock.model.ids import Epoch, Offset
from penstock.storage.checkpoints import EpochStart

NO_OFFSET = Offset(-1)
NO_EPOCH = Epoch(-1)


class Epochs:
    """Epochs and their starts both rise strictly."""

    __slots__ = ("_entries", "_log_end", "dirty", "latest")

    def __init__(
        self, entries: list[EpochStart] | None = None, log_end: Callable[[], Offset] = lambda: NO_OFFSET
    ) -> None:
        self._entries: list[EpochStart] = []
        self._log_end = log_end
        self.latest = NO_EPOCH
        for entry in entries or ():
            self.assign(entry.epoch, entry.start)
        self.dirty = False

    def entries(self) -> list[EpochStart]:
        return list(self._entries)

    def assign(self, epoch: Epoch, start: Offset) -> None:
        """`epoch` begins at `start`. Entries that contradict it go: they belong to a history that lost."""
        assert min(epoch, start) >= 0, "an epoch entry has no negative numbers"
        entries = self._entries
        if entries and entries[-1].epoch == epoch and start >= entries[-1].start:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start >= start):
            entries.pop()
        entries.append(EpochStart(epoch, start))
        self._changed()

    def epoch_at(self, offset: int) -> Epoch:
        """The epoch that wrote `offset`; -1 when it lies before the first one known."""
        slot = bisect_right(self._entries, offset, key=lambda entry: entry.start) - 1
        return self._entries[slot].epoch if slot >= 0 else NO_EPOCH

    def end_of(self, epoch: int) -> tuple[Epoch, Offset]:
        """The largest epoch not above `epoch` and the offset after its last record; (-1, -1) when nobody can know.

        The newest epoch ends at the log's end. An epoch below the first one known ends where that begins, and answers
        with its own number.
        """
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return Epoch(epoch), self._log_end()
        higher = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if higher == len(self._entries):
            return NO_EPOCH, NO_OFFSET
        end = self._entries[higher].start
        return (self._entries[higher - 1].epoch if higher else Epoch(epoch)), end

    def truncate_from_end(self, end: int) -> None:
        """The log was cut at `end`: epochs that begin there or later never happened."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start >= end:
            self._entries.pop()
        if len(self._entries) != before:
            self._changed()

    def truncate_from_start(self, start: int) -> None:
        """The log begins at `start` now: of the epochs before it only the one that holds `start` stays."""
        below = bisect_right(self._entries, start, key=lambda entry: entry.start)
        if below and self._entries[:below] != [(self._entries[below - 1].epoch, start)]:
            self._entries[:below] = [EpochStart(self._entries[below - 1].epoch, Offset(start))]
            self._changed()

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self._changed()

    def _changed(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else NO_EPOCH
        self.dirty = True
