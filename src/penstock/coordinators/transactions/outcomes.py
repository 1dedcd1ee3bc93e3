"""How transactions end: with which epoch, who gets another producer id, and what has to be done about it.

| who ends it | rules | epoch | last epoch | at the last epoch |
|---|---|---|---|---|
| EndTxn up to version 4 | classic | stays | stays | stays |
| EndTxn from version 5 on | an epoch per transaction | + 1 | the former | 32767, and a next producer id |
| the coordinator, transaction.version 2 | an epoch per transaction | + 1 | the former | 32767, and a next producer id |
| the coordinator, transaction.version below 2 | fences for good | + 1 | none | 32767 |
"""

from __future__ import annotations

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.effects import SendMarkers
from penstock.coordinators.transactions.records import FLEXIBLE_VALUE, state_record
from penstock.coordinators.transactions.requests import CLASSIC, EPOCH_PER_TRANSACTION
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER,
    State,
    Status,
    Transaction,
)
from penstock.coordinators.transactions.transitions import Outcome, completed, prepared


def classic_outcome(state: State, *, commits: bool) -> Outcome:
    """The producer goes on with the epoch that it has."""
    return Outcome(commits, state.epoch, NO_PRODUCER, CLASSIC)


def raised_outcome(table: TransactionTable, state: State, *, commits: bool) -> Outcome | None:
    """Every transaction has an epoch of its own. None when a producer id is needed and none is at hand."""
    if not state.exhausted:
        return Outcome(commits, state.epoch + 1, NO_PRODUCER, EPOCH_PER_TRANSACTION)
    assert table.value_version >= FLEXIBLE_VALUE, "records must be able to hold the next producer id"
    producer_id = table.next_producer_id()
    return None if producer_id is None else Outcome(commits, EPOCH_MAX, producer_id, EPOCH_PER_TRANSACTION)


def fencing_outcome(table: TransactionTable, state: State) -> Outcome | None:
    """The coordinator aborts. None when a producer id is needed and none is at hand."""
    version = table.transaction_version
    if version >= EPOCH_PER_TRANSACTION:
        return raised_outcome(table, state, commits=False)
    return Outcome(False, min(state.epoch + 1, EPOCH_MAX), NO_PRODUCER, version)


def decide_client_end(
    table: TransactionTable, transaction: Transaction, outcome: Outcome, reply: object, now: Moment
) -> Decision:
    """The producer ends its transaction. One that raises its epoch may ask again with the former one."""
    if outcome.client_version >= EPOCH_PER_TRANSACTION:
        transaction.last_epoch_told = transaction.state.epoch
    return _decide_end(table, transaction, outcome, reply, now)


def decide_fenced_abort(
    table: TransactionTable, transaction: Transaction, outcome: Outcome, reply: object | None, now: Moment
) -> Decision:
    """The coordinator ends it, because of its time or because of another producer with the same id."""
    raised = outcome.client_version >= EPOCH_PER_TRANSACTION
    transaction.last_epoch_told = transaction.state.epoch if raised else NO_EPOCH
    return _decide_end(table, transaction, outcome, reply, now)


def _decide_end(
    table: TransactionTable, transaction: Transaction, outcome: Outcome, reply: object | None, now: Moment
) -> Decision:
    state = prepared(transaction.state, outcome, now.wall)
    decision = Decision([state_record(transaction.id, state, table.value_version)], reply)
    if state.partitions:
        decision.effects.append(send_markers(table, transaction.id, state))
    else:
        decision.records.append(state_record(transaction.id, completed(state, now.wall), table.value_version))
    return decision


def send_markers(table: TransactionTable, transactional_id: str, state: State) -> SendMarkers:
    """The markers that a prepared transaction needs. Progress is in no record: all of its partitions get theirs."""
    table.marking_number += 1
    table.marking[transactional_id] = table.marking_number
    return SendMarkers(
        transactional_id=transactional_id,
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        coordinator_epoch=table.epoch,
        commits=state.status is Status.PREPARE_COMMIT,
        transaction_version=state.client_version,
        partitions=tuple(sorted(state.partitions)),
        number=table.marking_number,
    )
