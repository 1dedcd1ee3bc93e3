"""Offsets of partitions: of their ends, of a time, of the newest timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.admin.session import Results, Session, partition_words, refused
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.list_offsets import ListOffsetsRequest

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
_WORDS = {"latest": LATEST, "earliest": EARLIEST, "max_timestamp": MAX_TIMESTAMP}


@dataclass(frozen=True, slots=True)
class OffsetInfo:
    """What a look-up found. `offset` is -1 when no record is that late; `timestamp` is -1 for the ends of a log."""

    offset: int
    timestamp: int
    leader_epoch: int


def time_of(when: str | int) -> int:
    """ "earliest", "latest", "max_timestamp" or milliseconds since 1970, as the protocol counts them."""
    if isinstance(when, str):
        if when not in _WORDS:
            raise ValueError(f"{when!r} is no place in a log: expected {', '.join(_WORDS)} or a time in ms")
        return _WORDS[when]
    return when


async def list_offsets(
    session: Session, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> Results[TopicPartition, OffsetInfo]:
    async def ask(node: int, led: list[TopicPartition]) -> Mapping[TopicPartition, OffsetInfo | ClientError]:
        of_topic: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
        for item in led:
            of_topic.setdefault(item.topic, []).append(
                ListOffsetsRequest.ListOffsetsPartition(partition_index=item.partition, timestamp=wanted[item])
            )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=partitions)
                for name, partitions in of_topic.items()
            ],
            timeout_ms=session.request_timeout_ms,
        )
        outcomes: dict[TopicPartition, OffsetInfo | ClientError] = {}
        for topic in (await session.broker(node, request)).topics:
            for found in topic.partitions:
                item = TopicPartition(topic.name, found.partition_index)
                outcomes[item] = (
                    refused(found.error_code, None, partition_words(item))
                    if found.error_code
                    else OffsetInfo(found.offset, found.timestamp, found.leader_epoch)
                )
        return outcomes

    return await session.by_leader(wanted, ask)
