"""OffsetFetch (9), versions 1-10. How far groups have read; all of a group's topics when none are named (null).

Behaviour: answered once what is shown is committed. Who requires a stable offset is told UNSTABLE_OFFSET_COMMIT where a
transaction that is open may still change it. Topics that the client may not describe are refused one by one; of all
topics they are left out.
Notes: v1 has errors only at partitions; v2-7 one group and an error for it; v7 stable offsets; v8 several groups; v9
member epochs; v10 names topics by id. Old clients do not know COORDINATOR_NOT_AVAILABLE here and are told
NOT_COORDINATOR.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from penstock.coordinators.decision import Caller
from penstock.model.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    NOT_COORDINATOR,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    ErrorCode,
)
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered, then

if TYPE_CHECKING:
    from penstock.server.doors import Context, Outcome

AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
AskedTopic = OffsetFetchRequest.OffsetFetchRequestTopics
Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topic = OffsetFetchResponse.OffsetFetchResponseTopics
Partition = OffsetFetchResponse.OffsetFetchResponsePartitions
OldTopic = OffsetFetchResponse.OffsetFetchResponseTopic
OldPartition = OffsetFetchResponse.OffsetFetchResponsePartition

_GROUP_ERROR_SINCE: Final = 2
_GROUPS_SINCE: Final = 8
_BY_ID_SINCE: Final = 10
_NO_OFFSET: Final = -1


def handle(ctx: Context, request: OffsetFetchRequest) -> Outcome:
    if ctx.api_version < _GROUPS_SINCE:
        asked = _as_group(request)
        fetched = _fetch(ctx, asked, require_stable=request.require_stable)
        return then(fetched, lambda group: _old_reply(ctx, asked, group))
    found = [_fetch(ctx, group, require_stable=request.require_stable) for group in request.groups]
    return gathered(found, lambda groups: OffsetFetchResponse(groups=groups))


def _as_group(request: OffsetFetchRequest) -> AskedGroup:
    topics = None
    if request.topics is not None:
        topics = [AskedTopic(name=topic.name, partition_indexes=topic.partition_indexes) for topic in request.topics]
    return AskedGroup(group_id=request.group_id, topics=topics)


def _old_reply(ctx: Context, asked: AskedGroup, group: Group) -> OffsetFetchResponse:
    topics = group.topics
    if group.error_code and ctx.api_version < _GROUP_ERROR_SINCE:
        topics = [_failed(topic, group.error_code) for topic in asked.topics or ()]
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OldTopic(
                name=topic.name,
                partitions=[
                    OldPartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


# One group


def _fetch(ctx: Context, asked: AskedGroup, *, require_stable: bool) -> Group | Awaitable[Group]:
    if not ctx.allow(Operation.DESCRIBE, ResourceType.GROUP, asked.group_id):
        return Group(group_id=asked.group_id, error_code=GROUP_AUTHORIZATION_FAILED.code)
    if asked.topics is None:
        return then(_shown(ctx, asked, require_stable), lambda group: _visible(ctx, group))
    refused: list[Topic] = []
    wanted = [topic for topic in asked.topics if _may_see(ctx, topic, refused)]
    named = AskedGroup(
        group_id=asked.group_id, member_id=asked.member_id, member_epoch=asked.member_epoch, topics=wanted
    )

    def completed(group: Group) -> Group:
        if not group.error_code:
            group.topics += refused
        return group

    return then(_shown(ctx, named, require_stable), completed)


def _shown(ctx: Context, asked: AskedGroup, require_stable: bool) -> Group | Awaitable[Group]:
    def refuse(error: ErrorCode) -> Group:
        told = NOT_COORDINATOR if error is COORDINATOR_NOT_AVAILABLE else error
        return Group(group_id=asked.group_id, error_code=told.code)

    caller = Caller(ctx.client_id or "", ctx.client_host, ctx.api_version, None)
    shown: Group | Awaitable[Group] = ctx.node.groups.look(
        asked.group_id,
        lambda shard, now: shard.fetch_offsets(asked, caller, now, require_stable=require_stable),
        refuse,
    )
    return shown


def _may_see(ctx: Context, topic: AskedTopic, refused: list[Topic]) -> bool:
    """Finds the name of a topic that is asked for by id, and who may know of it."""
    if ctx.api_version >= _BY_ID_SINCE:
        known = ctx.node.metadata.image.topics.get(Uuid(topic.topic_id))
        if known is None:
            refused.append(_failed(topic, UNKNOWN_TOPIC_ID.code))
            return False
        topic.name = known.name
    if not ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        refused.append(_failed(topic, TOPIC_AUTHORIZATION_FAILED.code))
        return False
    return True


def _failed(topic: AskedTopic, error_code: int) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            Partition(partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error_code)
            for index in topic.partition_indexes
        ],
    )


def _visible(ctx: Context, group: Group) -> Group:
    """Of all topics, those that the client may know of; where ids are told, a topic that has none cannot be."""
    group.topics = [topic for topic in group.topics if ctx.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)]
    if ctx.api_version >= _BY_ID_SINCE:
        ids = ctx.node.metadata.image.ids
        for topic in group.topics:
            if topic.topic_id == ZERO_UUID:
                topic.topic_id = ids.get(topic.name, ZERO_UUID)
        group.topics = [topic for topic in group.topics if topic.topic_id != ZERO_UUID]
    return group
