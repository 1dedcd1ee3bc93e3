"""States as records of `__transaction_state`, and back. Bytes are those of Apache Kafka 4.3.1.

Version 0 of the value, which clusters below transaction.version 1 write, has no room for the previous and the next
producer id nor for the protocol of the client: a state that was written so has none of them.
"""

from __future__ import annotations

from typing import Final

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.transactions.requests import Partition
from penstock.coordinators.transactions.transaction import NO_PARTITIONS, State, Status
from penstock.model.ids import Millis
from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue

PLAIN_VALUE: Final = 0
FLEXIBLE_VALUE: Final = 1
FLEXIBLE_SINCE: Final = 1
"""From this level of transaction.version on values are written in the flexible version."""


def value_version(transaction_version: int) -> int:
    """The version of values that a cluster at this level of transaction.version writes."""
    return FLEXIBLE_VALUE if transaction_version >= FLEXIBLE_SINCE else PLAIN_VALUE


def state_record(transactional_id: str, state: State, version: int) -> StateRecord:
    """The record that says `state`, with a value of `version`."""
    value = TransactionLogValue(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        transaction_timeout_ms=state.timeout_ms,
        transaction_status=int(state.status),
        transaction_partitions=_by_topic(state),
        transaction_last_update_timestamp_ms=state.updated_ms,
        transaction_start_timestamp_ms=state.started_ms,
    )
    if version >= FLEXIBLE_VALUE:
        value.previous_producer_id = state.previous_producer_id
        value.next_producer_id = state.next_producer_id
        value.client_transaction_version = state.client_version
    return StateRecord(TransactionLogKey(transactional_id=transactional_id), value, version)


def tombstone(transactional_id: str) -> StateRecord:
    """The id is forgotten."""
    return StateRecord(TransactionLogKey(transactional_id=transactional_id), None)


def state_of(value: TransactionLogValue) -> State:
    """What a record says. ValueError when its status is none that is ever written."""
    producer_id, previous_id = value.producer_id, value.previous_producer_id
    return State(
        producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        Status(value.transaction_status),
        _partitions(value),
        Millis(value.transaction_last_update_timestamp_ms),
        Millis(value.transaction_start_timestamp_ms),
        # Nearly always the same number; a hundred thousand ids need not hold it twice.
        producer_id if previous_id == producer_id else previous_id,
        value.next_producer_id,
        value.client_transaction_version,
    )


def _by_topic(state: State) -> list[TransactionLogValue.PartitionsSchema] | None:
    """None exactly when the status is Empty."""
    if state.status is Status.EMPTY:
        return None
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(state.partitions):
        topics.setdefault(topic, []).append(index)
    schema = TransactionLogValue.PartitionsSchema
    return [schema(topic=topic, partition_ids=indexes) for topic, indexes in topics.items()]


def _partitions(value: TransactionLogValue) -> frozenset[Partition]:
    if not value.transaction_partitions:
        return NO_PARTITIONS
    return frozenset((topic.topic, index) for topic in value.transaction_partitions for index in topic.partition_ids)
