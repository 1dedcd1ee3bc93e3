"""Bugs of transactions that are planted in the product, and that whole clusters under seeds have to find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from penstock.client.consumer import fetch_replies
from penstock.client.producer.transactions.driver import TransactionDriver
from penstock.coordinators.groups.pending import PendingOffsets
from penstock.coordinators.groups.shard import GroupShard
from penstock.model.errors import INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, Refused
from penstock.model.ids import Offset
from penstock.server.coordinating import markers as marker_sender
from penstock.server.coordinating.home import Home
from penstock.server.partitions.hosted import Guard
from penstock.server.partitions.producing import markers, transactions
from penstock.storage.producers import Marker, Producers
from penstock.storage.transaction_index import TransactionIndex
from penstock.storage.verification import Verification
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


def next_batch_races_with_the_marker(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18575: the first batch of the next transaction overtakes the marker, which takes its leave from it."""
    patch.setattr(Verification, "outlives", lambda *_arguments: False)


def zombie_told_of_a_bad_state(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19690: whether leave was given is looked at before the epoch."""
    check = Producers._check_guard

    def hasty(self: Producers, header: Any, guard: Any, verifies: bool) -> None:
        known = self.get(header.producer_id)
        if verifies and guard is None and not (known and known.epoch == header.producer_epoch):
            raise Refused(INVALID_TXN_STATE, "nobody has given leave")
        check(self, header, guard, verifies)

    def unseen(self: Producers, producer_id: int, epoch: int, sequence: int, *, bumps_epoch: bool, now: Any) -> Any:
        return None if self.is_open(producer_id, epoch) else begin(self, producer_id, epoch, sequence, bumps_epoch, now)

    def begin(self: Producers, producer_id: int, epoch: int, sequence: int, bumps_epoch: bool, now: Any) -> Any:
        known = self.get(producer_id)
        if known is not None and epoch < known.epoch:
            return None
        return self.verifications.begin(producer_id, epoch, sequence, bumps_epoch=bumps_epoch, now=now)

    patch.setattr(Producers, "_check_guard", hasty)
    patch.setattr(Producers, "begin_verification", unseen)


def markers_answered_before_offsets_are_visible(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17507: the coordinator of a group hears of a marker some time after its sender has its answer."""
    tell = markers.MarkerDriver.tell

    def slowly(self: markers.MarkerDriver, topic: str, marked: Any) -> None:
        def later(index: int, producer_id: int, **how: Any) -> None:
            asyncio.get_running_loop().call_later(0.1, lambda: marked(index, producer_id, **how))

        tell(self, topic, later)

    patch.setattr(markers.MarkerDriver, "tell", slowly)
    patch.setattr(PendingOffsets, "is_open", lambda *_arguments: False)


def older_offset_overwrites_a_newer_one(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14505: what was committed in a transaction counts when that ends, whatever was written meanwhile."""
    patch.setattr(PendingOffsets, "overtaken", lambda *_arguments, **_more: None)


def markers_leave_before_prepare_is_committed(patch: pytest.MonkeyPatch) -> None:
    """A coordinator acts on what it has decided before anybody else has it."""

    def hasty(self: Home[Any], _hosted: object, effects: Any) -> None:
        self._kind.carry_out(self.index, self.epoch, effects)

    patch.setattr(Home, "_let_out", hasty)


def readers_show_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    """A client does not look at the list of aborted transactions."""
    opened = fetch_replies.open_fetched

    def blind(data: Any, start: Any, **how: Any) -> Any:
        return opened(data, start, **{**how, "aborted": how["aborted"] and []})

    patch.setattr(fetch_replies, "open_fetched", blind)


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
        planted.late_end_taken_for_current,
        planted.settling_told_too_late,
        planted.one_marker_for_all,
        next_batch_races_with_the_marker,
        zombie_told_of_a_bad_state,
        markers_answered_before_offsets_are_visible,
        older_offset_overwrites_a_newer_one,
        markers_leave_before_prepare_is_committed,
        readers_show_what_was_aborted,
    )
}

FOUND_BY = {
    "marker_of_an_old_epoch_accepted": 1,
    "stable_before_the_marker_is_committed": 1,
    "offsets_shown_before_the_marker": 1,
    "unstable_offsets_shown": 1,
    "verification_skipped": 1,
    "aborted_list_forgotten_at_a_start": 2,
    "open_transactions_forgotten_at_a_start": 2,
    "markers_answered_before_they_are_committed": 2,
    "repeated_marker_refused": 1,
    "leaderless_partition_skipped": 18,
    "aborted_while_batches_are_under_way": 1,
    "prepare_lost_at_failover": 1,
    "partition_added_in_memory_only": 1,
    "stuck_at_the_last_epoch": 5,
    "timed_out_transactions_forgotten_at_failover": 5,
    "outcome_of_the_log_forgotten": 1,
    "markers_leave_before_prepare_is_committed": 1,
    "readers_show_what_was_aborted": 2,
    "markers_answered_before_offsets_are_visible": 1,
    "older_offset_overwrites_a_newer_one": 6,
    "one_marker_for_all": 1,
    "settling_told_too_late": 5,
    "zombie_told_of_a_bad_state": 1,
    "next_batch_races_with_the_marker": 6,
}
"""The seed that found each bug last. The others are looked for in the soak."""
