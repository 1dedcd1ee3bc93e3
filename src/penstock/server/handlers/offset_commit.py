"""OffsetCommit (8), versions 2-10. A group has read this far.

Behaviour: partitions that the client may not read, or that do not exist, are refused one by one; the rest goes to the
group's shard and is answered when committed.
Notes: v2-4 retention time; v6 leader epochs; v7 static members; v9 member epochs; v10 names topics by id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    GROUP_AUTHORIZATION_FAILED,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import Uuid
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import then

if TYPE_CHECKING:
    from penstock.server.doors import Context, Outcome

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Result = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResult = OffsetCommitResponse.OffsetCommitResponsePartition

_BY_ID_SINCE: Final = 10


def handle(ctx: Context, request: OffsetCommitRequest) -> Outcome:
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return OffsetCommitResponse(topics=[_refused(topic, GROUP_AUTHORIZATION_FAILED) for topic in request.topics])
    refused: list[Result] = []
    wanted: list[Topic] = []
    for topic in request.topics:
        _sort_out(ctx, topic, wanted, refused)
    if not wanted:
        return OffsetCommitResponse(topics=refused)

    def refuse_all(error: ErrorCode) -> OffsetCommitResponse:
        return OffsetCommitResponse(topics=[_refused(topic, error) for topic in wanted])

    reply = ctx.node.groups.ask(request.group_id, replace(request, topics=wanted), ctx, refuse_all)
    return then(reply, lambda done: _merged(refused, done)) if refused else reply


def _sort_out(ctx: Context, topic: Topic, wanted: list[Topic], refused: list[Result]) -> None:
    image = ctx.node.metadata.image
    if ctx.api_version >= _BY_ID_SINCE:
        known = image.topics.get(Uuid(topic.topic_id))
        if known is None:
            refused.append(_refused(topic, UNKNOWN_TOPIC_ID))
            return
        topic.name = known.name
    else:
        known = image.topic(topic.name)
    if not ctx.allow(Operation.READ, ResourceType.TOPIC, topic.name):
        refused.append(_refused(topic, TOPIC_AUTHORIZATION_FAILED))
        return
    count = 0 if known is None else len(known.partitions)
    valid = [each for each in topic.partitions if 0 <= each.partition_index < count]
    if len(valid) < len(topic.partitions):
        invalid = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        refused.append(_refused(replace(topic, partitions=invalid), UNKNOWN_TOPIC_OR_PARTITION))
    if valid:
        wanted.append(topic if len(valid) == len(topic.partitions) else replace(topic, partitions=valid))


def _refused(topic: Topic, error: ErrorCode) -> Result:
    assert error is not NONE, "a refusal has a reason"
    return Result(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            PartitionResult(partition_index=each.partition_index, error_code=error.code) for each in topic.partitions
        ],
    )


def _merged(refused: list[Result], reply: OffsetCommitResponse) -> OffsetCommitResponse:
    """A topic whose partitions were refused in part stands once."""
    by_name = {(topic.name, topic.topic_id): topic for topic in refused}
    for topic in reply.topics:
        known = by_name.get((topic.name, topic.topic_id))
        if known is None:
            refused.append(topic)
        else:
            known.partitions += topic.partitions
    reply.topics = refused
    return reply
