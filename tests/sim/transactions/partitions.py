"""Partitions as transactions see them: who has one open, and which markers are taken. They never fail here.

A batch is written by whoever the coordinator says may write it (verification without its races: those are tested with
whole nodes). What it was part of is told by the first marker of its producer.
"""

from __future__ import annotations

from penstock.coordinators.transactions.effects import SendMarkers
from penstock.coordinators.transactions.requests import Partition
from penstock.model.errors import INVALID_PRODUCER_EPOCH, NONE, TRANSACTION_COORDINATOR_FENCED, ErrorCode

STRICT = 2
EPOCH_MAX = 32_767


class Written:
    """What one producer wrote in what it takes for one transaction, and how that ended in each partition."""

    __slots__ = ("answer", "commit_asked", "name", "outcomes", "partitions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partitions: set[Partition] = set()
        self.outcomes: dict[Partition, bool] = {}
        self.commit_asked = False
        self.answer: bool | None = None
        """Whether the producer was told that it is committed, or aborted; None when it was told nothing."""

    def ended(self, place: Partition, *, commits: bool) -> None:
        """Oracle 8: the answer is the outcome, and there is one outcome, which is commit only if that was asked for."""
        assert place not in self.outcomes, f"{self} has ended twice in {place}"
        assert self.commit_asked or not commits, f"{self} is committed and nobody has asked for it"
        self.outcomes[place] = commits
        self.check()

    def answered(self, *, commits: bool) -> None:
        self.answer = commits
        self.check()

    def check(self) -> None:
        outcomes = set(self.outcomes.values())
        assert len(outcomes) < 2, f"{self} is torn: {self.outcomes}"
        if self.answer is not None:
            assert not outcomes - {self.answer}, f"{self} was answered {self.answer} and became {self.outcomes}"

    def __repr__(self) -> str:
        return self.name


class PartitionLog:
    """One partition: by producer id, the epoch, the coordinator epoch and what is open."""

    __slots__ = ("coordinator_epochs", "epochs", "open", "place")

    def __init__(self, place: Partition) -> None:
        self.place = place
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.open: dict[int, list[Written]] = {}

    def write(self, producer_id: int, epoch: int, written: Written) -> bool:
        """False when the producer is known by a later epoch."""
        if epoch < self.epochs.get(producer_id, -1):
            return False
        self.epochs[producer_id] = epoch
        open_now = self.open.setdefault(producer_id, [])
        if written not in open_now:
            open_now.append(written)
        written.partitions.add(self.place)
        return True

    def mark(self, marker: SendMarkers) -> ErrorCode:
        producer_id, known = marker.producer_id, self.epochs.get(marker.producer_id, -1)
        of_the_open_one = marker.producer_epoch == known != EPOCH_MAX and producer_id in self.open
        if marker.producer_epoch < known or (marker.transaction_version >= STRICT and of_the_open_one):
            return INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < self.coordinator_epochs.get(producer_id, -1):
            return TRANSACTION_COORDINATOR_FENCED
        self.epochs[producer_id] = marker.producer_epoch
        self.coordinator_epochs[producer_id] = marker.coordinator_epoch
        for written in self.open.pop(producer_id, ()):
            written.ended(self.place, commits=marker.commits)
        return NONE
