"""What is open in partitions, held against what coordinators know; and ending what they do not.

A transaction hangs when it is open in a partition and its coordinator knows nothing of that: nobody will ever end it,
so the last stable offset stands, readers of committed records wait, and compaction stops. It comes from a late record
of an old client, where leaders do not ask coordinators before they write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.client.admin.producers import ProducerInfo, describe_producers
from penstock.client.admin.session import Session, partition_words, refused
from penstock.client.admin.transactions import TransactionInfo, describe_transactions, list_transactions
from penstock.client.errors import BrokerRefused, ClientError
from penstock.model.errors import INVALID_TXN_STATE, TRANSACTIONAL_ID_NOT_FOUND
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest

_LENIENT: Final = 0
"""The transaction version whose rule takes a marker with the epoch of the open transaction itself."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in a partition, from `start_offset` on. Its last record has `last_timestamp`.

    `transactional_id`, `state`, `started_ms` and `timeout_ms` are the coordinator's; they are None of one that hangs,
    which no coordinator knows to be open in this partition.
    """

    topic: str
    partition: int
    start_offset: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transactional_id: str | None = None
    state: str | None = None
    started_ms: int | None = None
    timeout_ms: int | None = None

    @property
    def hanging(self) -> bool:
        """Whether nobody will end it."""
        return self.transactional_id is None


async def open_transactions(
    session: Session, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
) -> list[OpenTransaction]:
    opened = await _opened(session, partitions, broker_id)
    if not opened:
        return []
    known = await _known(session, {producer.producer_id for _, producer in opened})
    found = [_told(item, producer, known.get(producer.producer_id)) for item, producer in opened]
    unknown = [TopicPartition(each.topic, each.partition) for each in found if each.hanging]
    if unknown:
        # One that ended between the two questions is as unknown to its coordinator as one that hangs.
        still = {(item, p.transaction_start) for item, p in await _opened(session, unknown, broker_id)}
        found = [
            each
            for each in found
            if not each.hanging or (TopicPartition(each.topic, each.partition), each.start_offset) in still
        ]
    return sorted(found, key=lambda each: (each.topic, each.partition, each.start_offset))


async def _opened(
    session: Session, partitions: Iterable[TopicPartition], broker_id: int | None
) -> list[tuple[TopicPartition, ProducerInfo]]:
    described = (await describe_producers(session, partitions, broker_id=broker_id)).checked()
    return [(item, each) for item, producers in described.items() for each in producers if each.transaction_start >= 0]


async def _known(session: Session, producer_ids: set[int]) -> dict[int, TransactionInfo]:
    """What coordinators know of producers, by producer id."""
    listed = await list_transactions(
        session, states=(), producer_ids=sorted(producer_ids), longer_than_ms=None, pattern=None
    )
    described = await describe_transactions(session, [each.id for each in listed])
    for failure in described.failed.values():
        if failure.error is not TRANSACTIONAL_ID_NOT_FOUND:  # it expired since
            raise failure
    return {info.producer_id: info for info in described.done.values()}


def _told(item: TopicPartition, producer: ProducerInfo, known: TransactionInfo | None) -> OpenTransaction:
    in_log = (
        item.topic,
        item.partition,
        producer.transaction_start,
        producer.producer_id,
        producer.epoch,
        producer.coordinator_epoch,
        producer.last_timestamp,
    )
    if known is None or item not in known.partitions:
        return OpenTransaction(*in_log)
    return OpenTransaction(*in_log, known.id, known.state, known.started_ms, known.timeout_ms)


async def abort_transaction(
    session: Session, partition: TopicPartition, *, start_offset: int | None, producer_id: int | None
) -> ProducerInfo:
    """Writes the end of an open transaction into one partition, as its coordinator would. Answers whose it was."""
    if (start_offset is None) == (producer_id is None):
        raise ValueError("a transaction is named by start_offset or by producer_id")
    opened = [producer for _, producer in await _opened(session, [partition], None)]
    wanted = [each for each in opened if start_offset == each.transaction_start or producer_id == each.producer_id]
    if not wanted:
        which = f"begins at offset {start_offset}" if producer_id is None else f"is of producer {producer_id}"
        there = ", ".join(f"{each.transaction_start} (producer {each.producer_id})" for each in opened)
        raise BrokerRefused(
            f"no open transaction {which}; open there are those from offset {there}"
            if opened
            else f"no open transaction {which}; none is open there",
            where=partition_words(partition),
            error=INVALID_TXN_STATE,
        )
    (producer,) = wanted
    made = WriteTxnMarkersRequest
    request = made(
        markers=[
            made.WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                transaction_result=False,
                topics=[made.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
                # A partition that never had a marker knows of no coordinator's epoch.
                coordinator_epoch=max(producer.coordinator_epoch, 0),
                transaction_version=_LENIENT,
            )
        ]
    )

    async def ask(node: int, led: list[TopicPartition]) -> Mapping[TopicPartition, ClientError | None]:
        reply = await session.broker(node, request)
        codes = [
            written.error_code for marker in reply.markers for topic in marker.topics for written in topic.partitions
        ]
        return {item: refused(code, None, partition_words(item)) if code else None for item in led for code in codes}

    (await session.by_leader([partition], ask)).checked()
    return producer
