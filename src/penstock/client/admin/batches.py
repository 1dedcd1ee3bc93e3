"""Batches as readers of committed records see them: where they lie and who wrote them, without what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from penstock.client.admin.session import Session, partition_words, refused
from penstock.client.consumer.batches import open_fetched
from penstock.client.consumer.fetch_session import FINAL_EPOCH, NO_SESSION
from penstock.client.consumer.offsets import READ_COMMITTED
from penstock.client.errors import ClientError, TimedOutWaiting
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse

_BY_NAME_NEWEST: Final = 12
_BYTES: Final = 4 << 20
_WAIT_MS: Final = 500


class CommittedBatch(NamedTuple):
    """One batch of records that are committed; the ids are -1 of a producer without one."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    records: int


@dataclass(slots=True)
class CommittedSpan:
    """Offsets of one partition: the batches that readers are shown, and transactions that they are not."""

    batches: list[CommittedBatch] = field(default_factory=list)
    aborted: set[tuple[int, int]] = field(default_factory=set)
    """Producer id and first offset of aborted transactions that reach into it."""


async def committed_batches(session: Session, partition: TopicPartition, start: int, end: int) -> CommittedSpan:
    """Of offsets [start, end), which must be stable, or become so in the time of a call."""
    found = CommittedSpan()
    offset = start
    deadline = asyncio.get_running_loop().time() + session.timeout_ms / 1000
    while offset < end:

        async def ask(node: int, _: list[TopicPartition]) -> Mapping[TopicPartition, FetchResponse.PartitionData]:
            reply = await session.broker(node, _request(partition, offset), _BY_NAME_NEWEST)  # noqa: B023 - awaited here
            (data,) = (each for topic in reply.responses for each in topic.partitions)
            return {partition: _checked(data, partition)}

        data = (await session.by_leader([partition], ask)).checked()[partition]
        batches = open_fetched(data.records or b"", offset, aborted=data.aborted_transactions or ())  # type: ignore[arg-type]  # only a broker's own replies hold file spans
        found.aborted.update((each.producer_id, each.first_offset) for each in data.aborted_transactions or ())
        for batch in batches:
            if batch.broken is not None:
                raise ClientError(f"the log cannot be read at offset {offset}: {batch.broken}", where=str(partition))
            header = batch.header
            if header is not None and header.base_offset < end:
                whose = (header.producer_id, header.producer_epoch)
                found.batches.append(
                    CommittedBatch(header.base_offset, header.last_offset, *whose, header.record_count)
                )
            offset = batch.end
        if not batches and asyncio.get_running_loop().time() > deadline:
            raise TimedOutWaiting(f"offset {offset} did not become stable", where=partition_words(partition))
    return found


def _checked(data: FetchResponse.PartitionData, partition: TopicPartition) -> FetchResponse.PartitionData:
    if data.error_code:
        raise refused(data.error_code, None, partition_words(partition))
    return data


def _request(partition: TopicPartition, offset: int) -> FetchRequest:
    made = FetchRequest
    wanted = made.FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=_BYTES)
    return made(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_BYTES,
        isolation_level=READ_COMMITTED,
        session_id=NO_SESSION,
        session_epoch=FINAL_EPOCH,
        topics=[made.FetchTopic(topic=partition.topic, partitions=[wanted])],
    )
