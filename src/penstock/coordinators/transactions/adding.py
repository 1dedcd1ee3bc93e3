"""Partitions join a transaction: added by a client, by the leader of a partition, or as the home of a group's offsets.

A transaction that settles is told so before producer id and epoch are looked at. A producer that has just been given
the next producer id would otherwise hear that it is unknown (KAFKA-18660).
"""

from __future__ import annotations

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.home import home_partition
from penstock.coordinators.transactions.answers import add_offsets_refused
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.requests import CLASSIC, AddPartitions, Partition, PartitionsAdded
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.timeouts import begin_time
from penstock.coordinators.transactions.transaction import PREPARED, Status, Transaction
from penstock.coordinators.transactions.transitions import ongoing
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    NONE,
    PRODUCER_FENCED,
    ErrorCode,
)
from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def decide_add(table: TransactionTable, request: AddPartitions, now: Moment) -> Decision:
    """Takes the partitions into the transaction, which they may begin. The reply leaves when that is committed."""
    error = check_add(table, request.transactional_id, request.producer_id, request.producer_epoch, now)
    decision = Decision(reply=PartitionsAdded.all_with(error, request.partitions))
    if error is NONE:
        _add(table, request.transactional_id, request.partitions, request.client_version, now, decision)
    return decision


def decide_add_offsets(table: TransactionTable, request: AddOffsetsToTxnRequest, now: Moment) -> Decision:
    """Takes the partition that holds a group's offsets into the transaction."""
    error = check_add(table, request.transactional_id, request.producer_id, request.producer_epoch, now)
    if error is not NONE:
        return Decision(reply=add_offsets_refused(error))
    decision = Decision(reply=AddOffsetsToTxnResponse())
    _add(table, request.transactional_id, (_home_of_offsets(table, request.group_id),), CLASSIC, now, decision)
    return decision


def check_add(
    table: TransactionTable, transactional_id: str, producer_id: int, producer_epoch: int, now: Moment
) -> ErrorCode:
    """Whether the producer may add partitions now."""
    if not transactional_id:
        return INVALID_REQUEST
    transaction = table.transactions.get(transactional_id)
    if transaction is None:
        return INVALID_PRODUCER_ID_MAPPING
    if _settling(transaction, now):
        return CONCURRENT_TRANSACTIONS
    if transaction.state.producer_id != producer_id:
        return INVALID_PRODUCER_ID_MAPPING
    if transaction.state.epoch != producer_epoch:
        return PRODUCER_FENCED
    return NONE


def _settling(transaction: Transaction, now: Moment) -> bool:
    """Behind partitions that are being added others can be: both replies wait for the log."""
    status = transaction.state.status
    return status in PREPARED or (status is not Status.ONGOING and not transaction.committed(now))


def _add(
    table: TransactionTable,
    transactional_id: str,
    partitions: tuple[Partition, ...],
    client_version: int,
    now: Moment,
    decision: Decision,
) -> None:
    state = table.transactions[transactional_id].state
    if state.status is Status.ONGOING and state.partitions.issuperset(partitions):
        return
    if state.status is not Status.ONGOING:
        begin_time(table, transactional_id, state.timeout_ms, now)
    grown = ongoing(state, partitions, client_version, now.wall)
    decision.records.append(state_record(transactional_id, grown, table.value_version))


def _home_of_offsets(table: TransactionTable, group_id: str) -> Partition:
    """Where the coordinator of the group is, or will be once the topic is made."""
    topic = table.image.topic(OFFSETS_TOPIC)
    count = table.settings.offsets_partitions if topic is None else len(topic.partitions)
    return (OFFSETS_TOPIC, home_partition(group_id, count))
