"""Batches whose transaction the coordinator is being asked about: one entry for each producer, in memory only.

The first batch of a transaction may come late, when the transaction is over already; written then, nobody would ever
end it. So the leader asks whether the partition is part of the transaction. While it waits the transaction may end and
another begin. The entry is therefore the guard too: an answer counts only while the entry that it was asked for is
there. It goes with the first batch of the transaction and with a marker, whichever comes first.
"""

from __future__ import annotations

from typing import Final

EPOCH_MAX: Final = (1 << 15) - 1
"""No producer has this epoch: only the marker that ends the last transaction before a change of ids."""


class Verification:
    """What is asked about one producer. Compared by identity."""

    __slots__ = ("bumps_epoch", "created_ms", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, *, bumps_epoch: bool, created_ms: int) -> None:
        """`bumps_epoch` says that every transaction of the producer has an epoch of its own."""
        self.epoch, self.lowest_sequence = epoch, sequence
        self.bumps_epoch, self.created_ms = bumps_epoch, created_ms

    def also(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same answer."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence

    def outlives(self, marker_epoch: int) -> bool:
        """Whether a marker ends the transaction before the one that is asked about.

        Where every transaction has its own epoch, its marker has the next one: the first batch of the next transaction
        may overtake it.
        """
        return self.bumps_epoch and marker_epoch == self.epoch


class Verifications:
    """The entries of one log."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: int) -> Verification | None:
        return self._by_id.get(producer_id)

    def begin(self, producer_id: int, epoch: int, sequence: int, *, bumps_epoch: bool, now: int) -> Verification:
        """The entry of a producer, which takes the batch with `sequence` in."""
        entry = self._by_id.get(producer_id)
        if entry is None:
            entry = Verification(epoch, sequence, bumps_epoch=bumps_epoch, created_ms=now)
            self._by_id[producer_id] = entry
        else:
            entry.also(epoch, sequence)
        return entry

    def written(self, producer_id: int) -> None:
        """A batch of a transaction was written."""
        self._by_id.pop(producer_id, None)

    def ended(self, producer_id: int, marker_epoch: int) -> None:
        """A marker was written."""
        entry = self._by_id.get(producer_id)
        if entry is not None and not entry.outlives(marker_epoch):
            del self._by_id[producer_id]

    def expire(self, now: int, expiration_ms: int) -> None:
        """Forgets those that nobody came back to."""
        for producer_id, entry in list(self._by_id.items()):
            if now - entry.created_ms >= expiration_ms:
                del self._by_id[producer_id]
