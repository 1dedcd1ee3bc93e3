"""ConsumerGroupHeartbeat (68), versions 0-1. The only request of a member whose group the coordinator assigns.

Behaviour: joins, stays, tells what was revoked, leaves; the reply brings the assignment when it changed. Names of
topics that the member may not describe refuse the whole request.
Notes: v1 subscriptions by pattern, and member ids made by the client. UNSUPPORTED_VERSION where the consumer protocol
is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.group_requests import serves_consumer_protocol

if TYPE_CHECKING:
    from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: ConsumerGroupHeartbeatRequest) -> Outcome:
    if not serves_consumer_protocol(ctx):
        return _refused(UNSUPPORTED_VERSION)
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(GROUP_AUTHORIZATION_FAILED)
    for topic in request.subscribed_topic_names or ():
        if not ctx.allow(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            return _refused(TOPIC_AUTHORIZATION_FAILED)
    return ctx.node.groups.ask(request.group_id, request, ctx, _refused)


def _refused(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code)
