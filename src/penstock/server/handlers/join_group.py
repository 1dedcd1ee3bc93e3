"""JoinGroup (11), versions 0-9. A consumer wants to be in the next generation of a classic group.

Behaviour: held back until the rebalance is complete; only this connection waits. The leader is told all members.
Notes: v1 rebalance timeout; v4 a new member is told its id first (MEMBER_ID_REQUIRED); v5 static members; v7 protocol
type, and null for no protocol; v8 reason; v9 the leader may be told to keep the assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, ErrorCode
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import then

if TYPE_CHECKING:
    from penstock.protocol.messages.join_group import JoinGroupRequest
    from penstock.server.doors import Context, Outcome

_NULL_PROTOCOL_SINCE: Final = 7


def handle(ctx: Context, request: JoinGroupRequest) -> Outcome:
    def refused(error: ErrorCode) -> JoinGroupResponse:
        no_protocol = None if ctx.api_version >= _NULL_PROTOCOL_SINCE else ""
        return JoinGroupResponse(error_code=error.code, protocol_name=no_protocol)

    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return refused(GROUP_AUTHORIZATION_FAILED)
    reply = ctx.node.groups.ask(request.group_id, request, ctx, refused)
    return then(reply, _without_protocol) if ctx.api_version >= _NULL_PROTOCOL_SINCE else reply


def _without_protocol(reply: JoinGroupResponse) -> JoinGroupResponse:
    """Whoever did not get in is told no protocol, where null can say so."""
    if reply.error_code:
        reply.protocol_name = None
    return reply
