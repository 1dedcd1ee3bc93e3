"""OffsetCommit and OffsetFetch as data: the request for a version, and what a reply says. Pure.

Versions from 10 on name topics by id; they are used when every topic's id is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from penstock.client.consumer.group.assignors.subscription import by_topic
from penstock.client.consumer.offsets import OffsetAndMetadata
from penstock.model.errors import NONE, ErrorCode, error_of
from penstock.model.ids import TopicPartition, Uuid
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

BY_ID = 10
BY_GROUP = 8
STABLE = 7
WITH_INSTANCE = 7
WITH_MEMBER = 9

IdOf: TypeAlias = Callable[[str], Uuid | None]
NameOf: TypeAlias = Callable[[bytes], str | None]


class Identity(NamedTuple):
    """As whom a group is spoken to. Generation -1 is nobody: a consumer that assigned its partitions itself."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    by_epoch: bool = False


def version_for(newest: int, topics: Iterable[str], id_of: IdOf) -> int:
    """The newest version that can name these topics."""
    return newest if newest < BY_ID or all(id_of(topic) for topic in topics) else BY_ID - 1


def commit_request(
    who: Identity, offsets: Mapping[TopicPartition, OffsetAndMetadata], version: int, id_of: IdOf
) -> OffsetCommitRequest:
    topics = []
    for topic, numbers in by_topic(offsets).items():
        partitions = [_commit_partition(number, offsets[TopicPartition(topic, number)]) for number in numbers]
        named = OffsetCommitRequest.OffsetCommitRequestTopic(partitions=partitions)
        if version >= BY_ID:
            named.topic_id = id_of(topic) or Uuid(bytes(16))
        else:
            named.name = topic
        topics.append(named)
    return OffsetCommitRequest(
        group_id=who.group_id,
        generation_id_or_member_epoch=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance_id if version >= WITH_INSTANCE else None,
        topics=topics,
    )


def _commit_partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequest.OffsetCommitRequestPartition:
    return OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def commit_refusals(reply: OffsetCommitResponse, name_of: NameOf) -> Iterator[tuple[TopicPartition, ErrorCode]]:
    """The partitions that were not committed, with the reason."""
    for topic in reply.topics:
        name = topic.name or name_of(topic.topic_id) or ""
        for partition in topic.partitions:
            if partition.error_code != NONE.code:
                yield TopicPartition(name, partition.partition_index), error_of(partition.error_code)


def fetch_request(who: Identity, partitions: Iterable[TopicPartition], version: int, id_of: IdOf) -> OffsetFetchRequest:
    """Only stable offsets: what a transaction is about to change is waited for, as every Kafka consumer does."""
    topics = by_topic(partitions).items()
    if version < BY_GROUP:
        return OffsetFetchRequest(
            group_id=who.group_id,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in topics
            ],
            require_stable=version >= STABLE,
        )
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=who.group_id, topics=[])
    assert group.topics is not None
    for topic, numbers in topics:
        asked = OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=numbers)
        if version >= BY_ID:
            asked.topic_id = id_of(topic) or Uuid(bytes(16))
        else:
            asked.name = topic
        group.topics.append(asked)
    if who.by_epoch and who.generation >= 0 and version >= WITH_MEMBER:
        group.member_id, group.member_epoch = who.member_id, who.generation
    return OffsetFetchRequest(groups=[group], require_stable=True)


class Fetched(NamedTuple):
    """What OffsetFetch said: an error of the whole group, errors of partitions, and what is committed."""

    error: ErrorCode
    refusals: list[tuple[TopicPartition, ErrorCode]]
    offsets: dict[TopicPartition, OffsetAndMetadata]


def fetched(reply: OffsetFetchResponse, name_of: NameOf) -> Fetched:
    """Partitions without a committed offset are left out."""
    group = reply.groups[0] if reply.groups else None
    found = Fetched(error_of(reply.error_code if group is None else group.error_code), [], {})
    for topic in reply.topics if group is None else group.topics:
        name = topic.name or name_of(getattr(topic, "topic_id", b"")) or ""
        for partition in topic.partitions:
            where = TopicPartition(name, partition.partition_index)
            if partition.error_code != NONE.code:
                found.refusals.append((where, error_of(partition.error_code)))
            elif partition.committed_offset >= 0:
                found.offsets[where] = OffsetAndMetadata(
                    partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
                )
    return found
