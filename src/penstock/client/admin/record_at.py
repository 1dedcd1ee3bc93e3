"""One record: the first that is stored at or behind an offset, committed or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.client.admin.session import Session, partition_words, refused
from penstock.client.consumer.batches import Batch, open_fetched
from penstock.client.consumer.fetch_session import FINAL_EPOCH, NO_SESSION
from penstock.client.consumer.offsets import READ_UNCOMMITTED
from penstock.client.errors import ClientError
from penstock.kernels import BadBytes, ConsumerRecord
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.wire import Malformed

_BY_NAME_NEWEST: Final = 12
_BATCHES_MAX: Final = 100
"""So many markers and gaps are passed over; a partition where more of them follow each other shows no record."""


async def record_at(session: Session, partition: TopicPartition, offset: int) -> ConsumerRecord | None:
    """None where no record is stored yet. A broker sends the whole batch, however large, and no other."""
    for _ in range(_BATCHES_MAX):
        data = await _fetched(session, partition, offset)
        batches = open_fetched(data.records or b"", offset)  # type: ignore[arg-type]  # only a broker's own replies hold file spans
        if not batches:
            return None
        for batch in batches:
            records = _decoded(batch, partition, offset)
            if records:
                return records[0]
            offset = batch.end
    return None


def _decoded(batch: Batch, partition: TopicPartition, offset: int) -> list[ConsumerRecord]:
    try:
        if batch.broken is not None:
            raise batch.broken
        return batch.decode(*partition, offset) if batch.header is not None else []
    except (BadBytes, Malformed) as broken:
        raise ClientError(f"the log cannot be read at offset {offset}: {broken}", where=str(partition)) from None


async def _fetched(session: Session, partition: TopicPartition, offset: int) -> FetchResponse.PartitionData:
    async def ask(node: int, _: list[TopicPartition]) -> Mapping[TopicPartition, FetchResponse.PartitionData]:
        reply = await session.broker(node, _request(partition, offset), _BY_NAME_NEWEST)
        (data,) = (each for topic in reply.responses for each in topic.partitions)
        if data.error_code:
            raise refused(data.error_code, None, partition_words(partition))
        return {partition: data}

    return (await session.by_leader([partition], ask)).checked()[partition]


def _request(partition: TopicPartition, offset: int) -> FetchRequest:
    made = FetchRequest
    wanted = made.FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=1)
    return made(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        isolation_level=READ_UNCOMMITTED,
        session_id=NO_SESSION,
        session_epoch=FINAL_EPOCH,
        topics=[made.FetchTopic(topic=partition.topic, partitions=[wanted])],
    )
