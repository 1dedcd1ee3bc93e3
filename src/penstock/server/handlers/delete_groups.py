"""DeleteGroups (42), versions 0-2. Removes empty groups with all their offsets.

Behaviour: each group has its own result; NON_EMPTY_GROUP while it has members.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, ErrorCode
from penstock.protocol.messages.delete_groups import DeleteGroupsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered

if TYPE_CHECKING:
    from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
    from penstock.server.doors import Context, Outcome

Result = DeleteGroupsResponse.DeletableGroupResult


def handle(ctx: Context, request: DeleteGroupsRequest) -> Outcome:
    may = {name: ctx.allow(Operation.DELETE, ResourceType.GROUP, name) for name in dict.fromkeys(request.groups_names)}
    allowed = [name for name in may if may[name]]
    refused = [_refused(name, GROUP_AUTHORIZATION_FAILED) for name in may if not may[name]]
    return gathered(
        [_deleted(ctx, name) for name in allowed], lambda results: DeleteGroupsResponse(results=results + refused)
    )


def _deleted(ctx: Context, name: str) -> Result | Awaitable[Result]:
    return ctx.node.groups.act(
        name, lambda shard, now: shard.decide_delete(name, now), lambda error: _refused(name, error)
    )


def _refused(name: str, error: ErrorCode) -> Result:
    return Result(group_id=name, error_code=error.code)
