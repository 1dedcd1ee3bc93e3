"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete: how far a group of any kind, or of none, has read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.coordinators.decision import Caller, Decision, Moment, ProducerEpoch, StateRecord
from penstock.coordinators.groups.pending import PendingOffsets
from penstock.coordinators.groups.records import offset_record, offset_tombstone
from penstock.coordinators.groups.table import (
    CONSUMER_PROTOCOL_TYPE,
    CommittedOffset,
    Group,
    GroupTable,
    OffsetKey,
)
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    UNSTABLE_OFFSET_COMMIT,
    ErrorCode,
)
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

GROUP_NOT_FOUND_SINCE: Final = 9
NO_OFFSET: Final = -1
_NOTHING_PENDING: Final = PendingOffsets()

# Commit


def decide_commit(table: GroupTable, request: OffsetCommitRequest, caller: Caller, now: Moment) -> Decision:
    """Stores what a member, or anybody while the group is empty, has read. Topics are named; ids are optional."""
    group = table.groups.get(request.group_id)
    error = _check_commit(group, request, caller.api_version)
    if error is not NONE:
        return Decision(reply=commit_refused(request, error))
    if group is not None:
        group.committed(request.member_id, now)
    reply = OffsetCommitResponse()
    out = Decision(reply=reply)
    for topic in request.topics:
        done = OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        reply.topics.append(done)
        for partition in topic.partitions:
            error = _commit(table, request, topic, partition, now, out.records)
            done.partitions.append(
                OffsetCommitResponse.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error.code
                )
            )
    return out


def _check_commit(group: Group | None, request: OffsetCommitRequest, api_version: int) -> ErrorCode:
    if group is not None:
        return group.check_commit(request, api_version)
    if request.generation_id_or_member_epoch < 0:
        return NONE
    return GROUP_ID_NOT_FOUND if api_version >= GROUP_NOT_FOUND_SINCE else ILLEGAL_GENERATION


def _commit(
    table: GroupTable,
    request: OffsetCommitRequest,
    topic: OffsetCommitRequest.OffsetCommitRequestTopic,
    partition: OffsetCommitRequest.OffsetCommitRequestPartition,
    now: Moment,
    records: list[StateRecord],
) -> ErrorCode:
    metadata = partition.committed_metadata or ""
    if java_length(metadata) > table.settings.offset_metadata_max:
        return OFFSET_METADATA_TOO_LARGE
    if request.retention_time_ms == -1:
        # Who names the topic means the one that has the name now.
        topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else table.image.ids.get(topic.name, ZERO_UUID)
        committed = CommittedOffset(
            partition.committed_offset, partition.committed_leader_epoch, metadata, now.wall, topic_id=topic_id
        )
    else:
        # The version that can hold an expiry has no room for the leader epoch or the topic's id.
        expires = now.wall + request.retention_time_ms
        committed = CommittedOffset(partition.committed_offset, -1, metadata, now.wall, expires)
    records.append(offset_record(request.group_id, topic.name, partition.partition_index, committed))
    return NONE


def decide_transactional_commit(table: GroupTable, request: TxnOffsetCommitRequest, now: Moment) -> Decision:
    """The same as part of a producer's transaction: it counts when that is committed. No sign of life of a member."""
    error = _check_transactional_commit(table.groups.get(request.group_id), request)
    if error is not NONE:
        return Decision(reply=transactional_commit_refused(request, error))
    reply = TxnOffsetCommitResponse()
    out = Decision(reply=reply, producer=ProducerEpoch(request.producer_id, request.producer_epoch))
    for topic in request.topics:
        done = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=topic.name)
        reply.topics.append(done)
        topic_id = table.image.ids.get(topic.name, ZERO_UUID)
        for partition in topic.partitions:
            metadata, index = partition.committed_metadata or "", partition.partition_index
            error = NONE
            if java_length(metadata) > table.settings.offset_metadata_max:
                error = OFFSET_METADATA_TOO_LARGE
            else:
                offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
                committed = CommittedOffset(offset, leader_epoch, metadata, now.wall, topic_id=topic_id)
                out.records.append(offset_record(request.group_id, topic.name, index, committed))
            done.partitions.append(
                TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(partition_index=index, error_code=error.code)
            )
    return out


def _check_transactional_commit(group: Group | None, request: TxnOffsetCommitRequest) -> ErrorCode:
    if not request.group_id:
        return INVALID_GROUP_ID
    if group is not None:
        return group.check_transactional_commit(request)
    return NONE if request.generation_id < 0 else ILLEGAL_GENERATION


def transactional_commit_refused(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def java_length(text: str) -> int:
    """The length that Java gives a string: its UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def commit_refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# Fetch


def fetch_offsets(
    table: GroupTable, request: OffsetFetchRequest.OffsetFetchRequestGroup, *, require_stable: bool = False
) -> OffsetFetchResponse.OffsetFetchResponseGroup:
    """The committed offsets of the partitions asked for, or of all. A partition without one answers −1, no error.

    With `require_stable` one that an open transaction may change is told as unstable instead.
    """
    group = table.groups.get(request.group_id)
    if group is not None:
        error = group.check_fetch(request.member_id, request.member_epoch)
        if error is not NONE:
            return OffsetFetchResponse.OffsetFetchResponseGroup(group_id=request.group_id, error_code=error.code)
    held = {} if group is None else table.offsets.get(request.group_id, {})
    reply = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=request.group_id)
    pending = table.pending if require_stable else _NOTHING_PENDING
    if request.topics is None:
        reply.topics = _all_topics(table, request.group_id, held, pending)
        return reply
    for topic in request.topics:
        partitions = [
            _unstable(index)
            if pending.is_open(request.group_id, topic.name, index)
            else _fetched(index, _held(table, held, (topic.name, index)), topic.topic_id)
            for index in topic.partition_indexes
        ]
        reply.topics.append(
            OffsetFetchResponse.OffsetFetchResponseTopics(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return reply


def _held(table: GroupTable, held: Mapping[OffsetKey, CommittedOffset], key: OffsetKey) -> CommittedOffset | None:
    """An offset that is of today's topic. One of a topic that is gone may lie here until it can be removed."""
    committed = held.get(key)
    return None if committed is None or table.is_of_a_former_topic(key[0], committed) else committed


def _unstable(index: int) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=UNSTABLE_OFFSET_COMMIT.code
    )


def _all_topics(
    table: GroupTable, group_id: str, held: Mapping[OffsetKey, CommittedOffset], pending: PendingOffsets
) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponse.OffsetFetchResponseTopics] = {}
    for (name, index), committed in held.items():
        if table.is_of_a_former_topic(name, committed):
            continue
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = OffsetFetchResponse.OffsetFetchResponseTopics(name=name)
        unstable = pending.is_open(group_id, name, index)
        topic.partitions.append(_unstable(index) if unstable else _fetched(index, committed, ZERO_UUID))
    return list(topics.values())


def _fetched(
    index: int, committed: CommittedOffset | None, topic_id: Uuid
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    if committed is None or _of_another_topic(committed.topic_id, topic_id):
        return OffsetFetchResponse.OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, metadata=""
        )
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _of_another_topic(stored: Uuid, asked: Uuid) -> bool:
    """Whether the offset belongs to a former topic of the same name. An unknown id is taken for the right one."""
    return stored not in (ZERO_UUID, asked) and asked != ZERO_UUID


# Delete


def decide_offset_delete(table: GroupTable, request: OffsetDeleteRequest) -> Decision:
    """Forgets offsets that no member of the group is using."""
    group = table.groups.get(request.group_id)
    error = _check_offset_delete(group, request)
    if error is not NONE or group is None:
        return Decision(reply=OffsetDeleteResponse(error_code=error.code))
    held = table.offsets.get(request.group_id, {})
    reply = OffsetDeleteResponse()
    out = Decision(reply=reply)
    for topic in request.topics:
        in_use = group.subscribes_to(topic.name)
        done = OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name)
        reply.topics.append(done)
        for partition in topic.partitions:
            index = partition.partition_index
            code = GROUP_SUBSCRIBED_TO_TOPIC.code if in_use else NONE.code
            done.partitions.append(
                OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=code)
            )
            known = (topic.name, index) in held or table.pending.is_open(request.group_id, topic.name, index)
            if known and not in_use:
                out.records.append(offset_tombstone(request.group_id, topic.name, index))
    return out


def _check_offset_delete(group: Group | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return INVALID_GROUP_ID
    if group is None:
        return GROUP_ID_NOT_FOUND
    # What members of another type use is not for us to know.
    if group.check_delete() is not NONE and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return NON_EMPTY_GROUP
    return NONE


def all_tombstones(table: GroupTable, group_id: str) -> list[StateRecord]:
    """Every offset of a group, gone; also those that are pending."""
    places = {**dict.fromkeys(table.offsets.get(group_id, {})), **dict.fromkeys(table.pending.of_group(group_id))}
    return [offset_tombstone(group_id, topic, partition) for topic, partition in places]
