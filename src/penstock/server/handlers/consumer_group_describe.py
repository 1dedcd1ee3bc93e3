"""ConsumerGroupDescribe (69), versions 0-1. Epochs, members and assignments of groups that the coordinator assigns.

Behaviour: each group has its own result, those that may not be described first. A group that reads a topic which the
client may not describe is refused as a whole.
Notes: v1 tells which protocol each member speaks. UNSUPPORTED_VERSION where the consumer protocol is off.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING

from penstock.model.errors import (
    GROUP_AUTHORIZATION_FAILED,
    INVALID_GROUP_ID,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.group_requests import serves_consumer_protocol
from penstock.server.loops.later import gathered

if TYPE_CHECKING:
    from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
    from penstock.server.doors import Context, Outcome

Group = ConsumerGroupDescribeResponse.DescribedGroup

_SECRET_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle(ctx: Context, request: ConsumerGroupDescribeRequest) -> Outcome:
    if not serves_consumer_protocol(ctx):
        return ConsumerGroupDescribeResponse(groups=[_refused(name, UNSUPPORTED_VERSION) for name in request.group_ids])
    may = {name: ctx.allow(Operation.DESCRIBE, ResourceType.GROUP, name) for name in dict.fromkeys(request.group_ids)}
    allowed = [name for name in request.group_ids if may[name]]
    refused = [_refused(name, GROUP_AUTHORIZATION_FAILED) for name in request.group_ids if not may[name]]

    def joined(groups: list[Group]) -> ConsumerGroupDescribeResponse:
        shown = [_with_topics_allowed(ctx, group) for group in groups]
        for group in shown:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = ctx.authorized_operations(ResourceType.GROUP, group.group_id)
        return ConsumerGroupDescribeResponse(groups=refused + shown)

    return gathered([_described(ctx, name) for name in allowed], joined)


def _described(ctx: Context, name: str) -> Group | Awaitable[Group]:
    if not name:
        return _refused(name, INVALID_GROUP_ID)
    described: Group | Awaitable[Group] = ctx.node.groups.look(
        name, lambda shard, _now: shard.described_consumer(name), lambda error: _refused(name, error)
    )
    return described


def _with_topics_allowed(ctx: Context, group: Group) -> Group:
    for topic in sorted(set(_topics_of(group))):
        if not ctx.may(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            refused = _refused(group.group_id, TOPIC_AUTHORIZATION_FAILED)
            refused.error_message = _SECRET_TOPICS
            return refused
    return group


def _topics_of(group: Group) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name


def _refused(name: str, error: ErrorCode) -> Group:
    return Group(group_id=name, error_code=error.code)
