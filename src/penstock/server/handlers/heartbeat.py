"""Heartbeat (12), versions 0-4. A member of a classic group is alive; it learns whether a rebalance goes on.

Behaviour: answered at once. While the group is loaded nobody knows its members, so the heartbeat is taken on trust.
Notes: v3 static members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import COORDINATOR_LOAD_IN_PROGRESS, GROUP_AUTHORIZATION_FAILED, NONE, ErrorCode
from penstock.protocol.messages.heartbeat import HeartbeatResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.heartbeat import HeartbeatRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: HeartbeatRequest) -> Outcome:
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=GROUP_AUTHORIZATION_FAILED.code)
    return ctx.node.groups.ask(request.group_id, request, ctx, _refused)


def _refused(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=(NONE if error is COORDINATOR_LOAD_IN_PROGRESS else error).code)
