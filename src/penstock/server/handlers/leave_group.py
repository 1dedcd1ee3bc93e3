"""LeaveGroup (13), versions 0-5. Members leave, or an operator removes them.

Behaviour: those who stay rebalance. Each member has its own result.
Notes: v0-2 one member, whose error is the reply's; v3 several members, static ones by instance id; v5 reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, ErrorCode
from penstock.protocol.messages.leave_group import LeaveGroupResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.leave_group import LeaveGroupRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: LeaveGroupRequest) -> Outcome:
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(GROUP_AUTHORIZATION_FAILED)
    return ctx.node.groups.ask(request.group_id, request, ctx, _refused)


def _refused(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
