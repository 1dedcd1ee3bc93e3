"""Positions of groups: what is committed, how far behind that is, changing and forgetting it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.admin.session import Results, Session, partition_words, refused, transient
from penstock.client.errors import ClientError, refusal
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    NON_EMPTY_GROUP,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest

# The versions after these name topics by id, which an administrator of old positions may not have.
_FETCH_NEWEST, _COMMIT_NEWEST = 9, 9
_OFFSET_FETCH, _SEVERAL_GROUPS_SINCE = 9, 8
_GROUPS_A_REQUEST = 100


READS_COMMITTED: Final = "read_committed"
"""As the metadata of a commit: whoever stands there reads what is committed, and is behind by no more than that."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A position: the next offset to read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in a partition; committed and lag are None where nothing was committed.

    `end` is the high watermark, or the last stable offset for a group of which it is known that it reads no further.
    """

    topic: str
    partition: int
    committed: int | None
    start: int
    end: int
    lag: int | None
    member_id: str | None
    client_id: str | None
    host: str | None


async def group_offsets(
    session: Session, group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
) -> dict[TopicPartition, CommittedOffset]:
    """What a group has committed, of all partitions for None; those without a commit are left out."""
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in _by_topic(partitions).items()
        ]
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    request = OffsetFetchRequest(groups=[wanted], require_stable=require_stable)

    async def ask(node: int, _: list[str]) -> Mapping[str, dict[TopicPartition, CommittedOffset] | ClientError]:
        (group,) = (await session.broker(node, request, newest=_FETCH_NEWEST)).groups
        return {group_id: _positions(group, group_id)}

    return (await session.by_coordinator([group_id], ask)).checked()[group_id]


async def positions_of_groups(
    session: Session, group_ids: Iterable[str]
) -> Results[str, dict[TopicPartition, CommittedOffset]]:
    """What each of many groups has committed. Brokers that take one group a request are asked once for each."""

    async def ask(node: int, ids: list[str]) -> Mapping[str, dict[TopicPartition, CommittedOffset] | ClientError]:
        link = await session.view.link(node)
        size = _GROUPS_A_REQUEST if link.newest(_OFFSET_FETCH) >= _SEVERAL_GROUPS_SINCE else 1
        found: dict[str, dict[TopicPartition, CommittedOffset] | ClientError] = {}
        for at in range(0, len(ids), size):
            groups = [
                OffsetFetchRequest.OffsetFetchRequestGroup(group_id=each, topics=None) for each in ids[at:][:size]
            ]
            reply = await session.broker(node, OffsetFetchRequest(groups=groups), newest=_FETCH_NEWEST)
            names = [told.group_id for told in reply.groups] if size > 1 else [ids[at]]
            found |= {name: _positions(told, name) for name, told in zip(names, reply.groups, strict=True)}
        return found

    return await session.by_coordinator(group_ids, ask)


def _positions(group: Any, group_id: str) -> dict[TopicPartition, CommittedOffset] | ClientError:
    """What a reply says of one group; what is refused of one partition is refused of all of it."""
    if group.error_code:
        return refusal(group.error_code, None, f"group {group_id!r}")
    offsets = {}
    for topic in group.topics:
        for found in topic.partitions:
            item = TopicPartition(topic.name, found.partition_index)
            if found.error_code:
                return refused(found.error_code, None, partition_words(item))
            if found.committed_offset >= 0:
                offsets[item] = CommittedOffset(
                    found.committed_offset, found.committed_leader_epoch, found.metadata or ""
                )
    return offsets


async def alter_group_offsets(
    session: Session, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Results[TopicPartition, None]:
    """Commits positions in place of the group, which must have no members."""
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=(wanted := offsets[TopicPartition(name, index)]).offset,
                        committed_leader_epoch=wanted.leader_epoch,
                        committed_metadata=wanted.metadata,
                    )
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(offsets).items()
        ],
    )

    async def call() -> Results[TopicPartition, None]:
        reply = await _coordinated(session, group_id, request, _COMMIT_NEWEST)
        return _per_partition(session, group_id, reply.topics)

    return await session.patient(call)


async def delete_group_offsets(
    session: Session, group_id: str, partitions: Iterable[TopicPartition]
) -> Results[TopicPartition, None]:
    """Forgets positions; refused for topics that members are subscribed to."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in _by_topic(partitions).items()
        ],
    )

    async def call() -> Results[TopicPartition, None]:
        reply = await _coordinated(session, group_id, request, None)
        if reply.error_code:
            session.view.forget_coordinator(group_id)
            raise _group_refusal(reply.error_code, group_id)
        return _per_partition(session, group_id, reply.topics)

    return await session.patient(call)


async def group_lag(session: Session, group_id: str, *, read_committed: bool) -> list[PartitionLag]:
    """Every partition that the group has committed or was assigned, with the ends of its log.

    Brokers do not know whether a group reads what is open or aborted: the caller says so, or its commits do.
    """
    from penstock.client.admin.groups import describe_groups
    from penstock.client.admin.offsets import EARLIEST, LATEST, list_offsets

    described, committed = await asyncio.gather(
        describe_groups(session, [group_id]), group_offsets(session, group_id, None, require_stable=False)
    )
    group = described.checked()[group_id]
    owners = {
        TopicPartition(topic, partition): member
        for member in group.members
        for topic, partitions in member.assignment.items()
        for partition in partitions
    }
    wanted = sorted({*committed, *owners})
    stable = {
        item for item in wanted if read_committed or (item in committed and committed[item].metadata == READS_COMMITTED)
    }
    starts, stable_ends, ends = await asyncio.gather(
        list_offsets(session, dict.fromkeys(wanted, EARLIEST)),
        list_offsets(session, dict.fromkeys(stable, LATEST), read_committed=True),
        list_offsets(session, {item: LATEST for item in wanted if item not in stable}),
    )
    found = {**ends.done, **stable_ends.done}
    lags = []
    for item in wanted:
        start, end, owner = starts.done.get(item), found.get(item), owners.get(item)
        position = committed[item].offset if item in committed else None
        lags.append(
            PartitionLag(
                item.topic,
                item.partition,
                position,
                start.offset if start else -1,
                end.offset if end else -1,
                max(end.offset - position, 0) if end is not None and position is not None else None,
                owner.id if owner else None,
                owner.client_id if owner else None,
                owner.host if owner else None,
            )
        )
    return lags


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for item in partitions:
        found.setdefault(item.topic, []).append(item.partition)
    return found


async def _coordinated(session: Session, group_id: str, request: object, newest: int | None) -> Any:
    try:
        return await session.coordinator(group_id, request, newest)
    except ClientError:
        session.view.forget_coordinator(group_id)
        raise


def _per_partition(session: Session, group_id: str, topics: Iterable[Any]) -> Results[TopicPartition, None]:
    """One outcome per partition. What concerns the group as a whole comes with every one, and may pass."""
    results: Results[TopicPartition, None] = Results()
    for topic in topics:
        for found in topic.partitions:
            item = TopicPartition(topic.name, found.partition_index)
            if not found.error_code:
                results.done[item] = None
                continue
            failure = _group_refusal(found.error_code, group_id)
            if transient(failure):
                session.view.forget_coordinator(group_id)
                raise failure
            absent = found.error_code == UNKNOWN_TOPIC_OR_PARTITION.code
            results.failed[item] = refused(found.error_code, None, partition_words(item)) if absent else failure
    return results


def _group_refusal(code: int, group_id: str) -> ClientError:
    words = {
        GROUP_ID_NOT_FOUND.code: "does not exist",
        NON_EMPTY_GROUP.code: "has members; stop them first",
        UNKNOWN_MEMBER_ID.code: "has members; stop them first",
        REBALANCE_IN_PROGRESS.code: "is rebalancing",
        GROUP_SUBSCRIBED_TO_TOPIC.code: "has members that read this topic; stop them first",
    }.get(code)
    return refusal(code, f"group {group_id!r} {words}" if words else None, "" if words else f"group {group_id!r}")
