"""Bugs that are planted in the coordinator, and that the world has to find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.coordinators.transactions import adding, ending, init, markers, outcomes, timeouts
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.shard import TransactionShard
from penstock.coordinators.transactions.transaction import EPOCH_MAX, PREPARED, State, Status, Transaction

Plant = Callable[[pytest.MonkeyPatch], None]


def prepare_lost_at_failover(patch: pytest.MonkeyPatch) -> None:
    """Whoever takes over leaves decided transactions to nobody."""
    patch.setattr(markers, "led", lambda _table, _now: ())


def late_end_taken_for_current(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17754: an end with the epoch before ends the next transaction."""
    patch.setattr(
        ending,
        "_is_current",
        lambda state, request: (
            state.producer_id == request.producer_id and state.epoch - request.producer_epoch in (0, 1)
        ),
    )


def fenced_producer_taken_for_a_repetition(patch: pytest.MonkeyPatch) -> None:
    """Whoever begins without naming an epoch leaves the one before valid: the former producer gets its epoch too."""
    decide = init._decide_anew

    def forgetful(table: Any, transaction: Transaction, request: Any, now: Any) -> Any:
        epoch = transaction.state.epoch
        decision = decide(table, transaction, request, now)
        if decision.records and request.producer_id == -1:
            transaction.last_epoch_told = epoch
        return decision

    patch.setattr(init, "_decide_anew", forgetful)


def epoch_behind_the_last_told(patch: pytest.MonkeyPatch) -> None:
    """Epochs count as used up one too late."""
    patch.setattr(State, "exhausted", property(lambda state: state.epoch >= EPOCH_MAX))


def stuck_at_the_last_epoch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20090: the coordinator's own aborts do not rotate."""

    def fencing(table: Any, state: State) -> Any:
        return None if state.exhausted else outcomes.raised_outcome(table, state, commits=False)

    patch.setattr(timeouts, "fencing_outcome", fencing)
    patch.setattr(init, "fencing_outcome", fencing)


def markers_of_anybody_complete(patch: pytest.MonkeyPatch) -> None:
    """Late news of a former transaction, or of a former epoch, completes the present one."""
    patch.setattr(markers, "_meant", lambda table, effect: table.prepared.get(effect.transactional_id))


def one_marker_for_all(patch: pytest.MonkeyPatch) -> None:
    """One marker is enough to complete a transaction."""
    patch.setattr(
        TransactionShard,
        "partitions_marked",
        lambda self, effect, _partitions, now: self.markers_written(effect, now),
    )


def partition_added_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    """Redpanda #6018: partitions that join later are answered and not written."""
    add = adding._add

    def lazy(table: Any, transactional_id: str, partitions: Any, version: int, now: Any, decision: Any) -> None:
        if table.transactions[transactional_id].state.status is not Status.ONGOING:
            add(table, transactional_id, partitions, version, now, decision)

    patch.setattr(adding, "_add", lazy)


def prepare_can_be_decided_anew(patch: pytest.MonkeyPatch) -> None:
    """What is decided and not yet marked is taken for ongoing by whoever asks next."""

    def settling(self: Transaction, now: Any) -> bool:
        return self.offset >= now.committed

    patch.setattr(Transaction, "settling", settling)


def settling_told_too_late(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18660: producer id and epoch are looked at before what settles."""
    check = adding.check_add

    def hasty(table: Any, transactional_id: str, producer_id: int, producer_epoch: int, now: Any) -> Any:
        transaction = table.transactions.get(transactional_id)
        known = None if transaction is None else transaction.state
        if known is not None and known.status in PREPARED and known.producer_id != producer_id:
            return adding.INVALID_PRODUCER_ID_MAPPING
        return check(table, transactional_id, producer_id, producer_epoch, now)

    patch.setattr(adding, "check_add", hasty)


def self_fencing_by_order_of_checks(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18464: an end that comes while the one before settles has its epoch looked at first."""
    decide = ending._decide_raising

    def hasty(table: Any, transaction: Transaction, request: Any, now: Any) -> Any:
        if transaction.state.status in PREPARED and request.producer_epoch >= transaction.state.epoch:
            return ending.Decision(reply=ending.end_refused(ending.PRODUCER_FENCED))
        return decide(table, transaction, request, now)

    patch.setattr(ending, "_decide_raising", hasty)


def timed_out_transactions_forgotten_at_failover(patch: pytest.MonkeyPatch) -> None:
    """Transactions that only the log tells of never run out of time."""
    patch.setattr(timeouts, "loaded", lambda _table, _now: None)


def outcome_of_the_log_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Completing writes an abort whatever was decided."""

    def complete(table: Any, transaction: Transaction, now: Any) -> Any:
        state = markers.completed(transaction.state, now.wall)._replace(status=Status.COMPLETE_ABORT)
        return markers.Decision([state_record(transaction.id, state, table.value_version)])

    patch.setattr(markers, "_decide_complete", complete)


def bumped_twice(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19367: whoever is replaced with a transaction open loses two epochs."""
    outcome = outcomes.raised_outcome

    def twice(table: Any, state: State) -> Any:
        raised = outcome(table, state, commits=False)
        return raised if raised is None or state.epoch >= EPOCH_MAX - 1 else raised._replace(epoch=raised.epoch + 1)

    patch.setattr(init, "fencing_outcome", twice)


def retry_of_a_rotation_refused(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20310: an end whose reply told the next producer id is not known again."""
    patch.setattr(ending, "_repeats_at_the_last_epoch", lambda *_arguments: False)


def end_where_nothing_began_refused(patch: pytest.MonkeyPatch) -> None:
    """Redpanda #7975, #17827: whoever does not know whether anything was written cannot abort it."""
    check = ending._check_raising

    def strict(transaction: Transaction, request: Any) -> Any:
        if ending._is_current(transaction.state, request) and transaction.state.status is not Status.ONGOING:
            return ending.INVALID_TXN_STATE
        return check(transaction, request)

    patch.setattr(ending, "_check_raising", strict)


BUGS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        prepare_lost_at_failover,
        late_end_taken_for_current,
        fenced_producer_taken_for_a_repetition,
        epoch_behind_the_last_told,
        stuck_at_the_last_epoch,
        markers_of_anybody_complete,
        one_marker_for_all,
        partition_added_in_memory_only,
        prepare_can_be_decided_anew,
        settling_told_too_late,
        self_fencing_by_order_of_checks,
        timed_out_transactions_forgotten_at_failover,
        outcome_of_the_log_forgotten,
        bumped_twice,
        retry_of_a_rotation_refused,
        end_where_nothing_began_refused,
    )
}
