"""Bugs of transactions that are planted in the product, and that whole clusters under seeds have to find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from penstock.client.producer.transactions.driver import TransactionDriver
from penstock.coordinators.groups.pending import PendingOffsets
from penstock.coordinators.groups.shard import GroupShard
from penstock.model.errors import INVALID_PRODUCER_EPOCH, Refused
from penstock.model.ids import Offset
from penstock.server.coordinating import markers as marker_sender
from penstock.server.partitions.hosted import Guard
from penstock.server.partitions.producing import markers, transactions
from penstock.storage.producers import Marker, Producers
from penstock.storage.transaction_index import TransactionIndex
from tests.sim.transactions import planted

Plant = Callable[[pytest.MonkeyPatch], None]


def marker_of_an_old_epoch_accepted(patch: pytest.MonkeyPatch) -> None:
    """A leader takes markers from whoever sends them, and the epoch of the producer falls."""
    patch.setattr(Producers, "check_marker", lambda *_arguments: None)


def stable_before_the_marker_is_committed(patch: pytest.MonkeyPatch) -> None:
    """The last stable offset moves when a marker is written, and the marker may yet be lost."""
    apply_marker = Producers.apply_marker

    def hasty(self: Producers, producer_id: int, epoch: int, offset: int, marker: Marker) -> Any:
        aborted = apply_marker(self, producer_id, epoch, offset, marker)
        self.unreplicated.clear()
        self._find_first_unstable()
        return aborted

    patch.setattr(Producers, "apply_marker", hasty)


def offsets_shown_before_the_marker(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a transaction count at once."""
    patch.setattr(GroupShard, "apply_pending", lambda self, _producer_id, record, offset: self.apply(record, offset))


def unstable_offsets_shown(patch: pytest.MonkeyPatch) -> None:
    """Redpanda #9571: who asks for stable offsets is shown the last one, though a transaction is about to change it."""
    patch.setattr(PendingOffsets, "is_open", lambda *_arguments: False)


def verification_skipped(patch: pytest.MonkeyPatch) -> None:
    """KIP-890: batches are let into transactions that their coordinator does not know of."""
    patch.setattr(transactions.Transactions, "begin", lambda *_arguments: (Guard(None, False), False))


def aborted_list_forgotten_at_a_start(patch: pytest.MonkeyPatch) -> None:
    """The index of aborted transactions is not read again after a start."""
    init = TransactionIndex.__init__

    def forgetful(self: TransactionIndex, files: Any, path: str, _present: bool) -> None:
        init(self, files, path, False)

    patch.setattr(TransactionIndex, "__init__", forgetful)


def open_transactions_forgotten_at_a_start(patch: pytest.MonkeyPatch) -> None:
    """Redpanda #5090: a snapshot of producers is read without the transactions that were open."""
    load = Producers.load

    def forgetful(self: Producers, records: Iterable[Any], end: Offset, now: Any) -> None:
        load(self, [record._replace(transaction_first=-1) for record in records], end, now)

    patch.setattr(Producers, "load", forgetful)


def markers_answered_before_they_are_committed(patch: pytest.MonkeyPatch) -> None:
    """A coordinator is told that a marker is written which the next leader has not."""
    patch.setattr(markers, "holds", lambda *_arguments: True)


def repeated_marker_refused(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19999: the same marker again is refused where every transaction has its epoch."""
    check = Producers.check_marker

    def strict(
        self: Producers, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int = 0
    ) -> None:
        check(self, producer_id, epoch, coordinator_epoch, transaction_version)
        known = self.get(producer_id)
        if transaction_version >= 2 and known is not None and known.epoch == epoch:
            raise Refused(INVALID_PRODUCER_EPOCH, "it is not newer")

    patch.setattr(Producers, "check_marker", strict)


def leaderless_partition_skipped(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20734: a partition that nobody leads just now gets no marker."""
    route = marker_sender.MarkerSender._route

    def skipping(self: Any, ending: Any, partitions: Any) -> None:
        route(self, ending, partitions)
        for partition in [each for each, lane in ending.unmarked.items() if lane is None]:
            del ending.unmarked[partition]

    patch.setattr(marker_sender.MarkerSender, "_route", skipping)


def aborted_while_batches_are_under_way(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-12671: a producer ends its transaction before its batches have their answers."""

    def hasty(self: TransactionDriver) -> None:
        if self._draining and not self._stopped:
            self._draining = False
            self._sender.accumulator.flushing -= 1
            self._held.clear()
            self._feed(self.machine.quiet(self._now()))

    patch.setattr(TransactionDriver, "_look_if_drained", hasty)


BUGS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        marker_of_an_old_epoch_accepted,
        stable_before_the_marker_is_committed,
        offsets_shown_before_the_marker,
        unstable_offsets_shown,
        verification_skipped,
        aborted_list_forgotten_at_a_start,
        open_transactions_forgotten_at_a_start,
        markers_answered_before_they_are_committed,
        repeated_marker_refused,
        leaderless_partition_skipped,
        aborted_while_batches_are_under_way,
        planted.prepare_lost_at_failover,
        planted.partition_added_in_memory_only,
        planted.stuck_at_the_last_epoch,
        planted.timed_out_transactions_forgotten_at_failover,
        planted.outcome_of_the_log_forgotten,
    )
}

FOUND_BY = {
    "stable_before_the_marker_is_committed": 2,
    "verification_skipped": 22,
    "partition_added_in_memory_only": 22,
    "outcome_of_the_log_forgotten": 22,
    "aborted_list_forgotten_at_a_start": 16,
    "offsets_shown_before_the_marker": 22,
    "aborted_while_batches_are_under_way": 22,
}
"""The seed that found each bug last. The others are looked for in the soak."""
