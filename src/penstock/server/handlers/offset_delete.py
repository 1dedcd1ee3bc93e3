"""OffsetDelete (47), version 0. Forgets how far a group has read some partitions.

Behaviour: topics that members read are refused with GROUP_SUBSCRIBED_TO_TOPIC; partitions that the client may not read,
or that do not exist, are refused one by one. An error of the whole group takes the place of all results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.model.errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import then

if TYPE_CHECKING:
    from penstock.server.doors import Context, Outcome

Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Result = OffsetDeleteResponse.OffsetDeleteResponseTopic
PartitionResult = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(ctx: Context, request: OffsetDeleteRequest) -> Outcome:
    if not ctx.allow(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return _refuse_all(GROUP_AUTHORIZATION_FAILED)
    refused: list[Result] = []
    wanted: list[Topic] = []
    for topic in request.topics:
        _sort_out(ctx, topic, wanted, refused)
    reply = ctx.node.groups.ask(request.group_id, replace(request, topics=wanted), ctx, _refuse_all)
    return then(reply, lambda done: _merged(refused, done))


def _sort_out(ctx: Context, topic: Topic, wanted: list[Topic], refused: list[Result]) -> None:
    if not ctx.allow(Operation.READ, ResourceType.TOPIC, topic.name):
        refused.append(_refused(topic, TOPIC_AUTHORIZATION_FAILED))
        return
    known = ctx.node.metadata.image.topic(topic.name)
    count = 0 if known is None else len(known.partitions)
    valid = [each for each in topic.partitions if 0 <= each.partition_index < count]
    invalid = [each for each in topic.partitions if not 0 <= each.partition_index < count]
    if invalid:
        refused.append(_refused(replace(topic, partitions=invalid), UNKNOWN_TOPIC_OR_PARTITION))
    if valid:
        wanted.append(replace(topic, partitions=valid))


def _refuse_all(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def _refused(topic: Topic, error: ErrorCode) -> Result:
    return Result(
        name=topic.name,
        partitions=[
            PartitionResult(partition_index=each.partition_index, error_code=error.code) for each in topic.partitions
        ],
    )


def _merged(refused: list[Result], reply: OffsetDeleteResponse) -> OffsetDeleteResponse:
    if reply.error_code:
        return reply
    by_name = {topic.name: topic for topic in refused}
    for topic in reply.topics:
        known = by_name.get(topic.name)
        if known is None:
            refused.append(topic)
        else:
            known.partitions += topic.partitions
    reply.topics = refused
    return reply
