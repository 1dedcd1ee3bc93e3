"""DescribeGroups (15), versions 0-6. State, protocol and members of classic groups.

Behaviour: each group has its own result, those that may not be described first.
Notes: v3 authorized operations; v4 static members; up to v5 a group that does not exist is Dead, from v6 on it is
GROUP_ID_NOT_FOUND with a message.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, ErrorCode
from penstock.protocol.messages.describe_groups import DescribeGroupsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
    from penstock.server.doors import Context, Outcome

Group = DescribeGroupsResponse.DescribedGroup

_OPERATIONS_SINCE: Final = 3
_MESSAGE_SINCE: Final = 6


def handle(ctx: Context, request: DescribeGroupsRequest) -> Outcome:
    may = {name: ctx.allow(Operation.DESCRIBE, ResourceType.GROUP, name) for name in dict.fromkeys(request.groups)}
    allowed = [name for name in request.groups if may[name]]
    refused = [_refused(name, GROUP_AUTHORIZATION_FAILED) for name in request.groups if not may[name]]
    with_operations = request.include_authorized_operations and ctx.api_version >= _OPERATIONS_SINCE

    def joined(groups: list[Group]) -> DescribeGroupsResponse:
        for group in groups:
            if with_operations and not group.error_code:
                group.authorized_operations = ctx.authorized_operations(ResourceType.GROUP, group.group_id)
            if ctx.api_version < _MESSAGE_SINCE:
                group.error_message = None
        return DescribeGroupsResponse(groups=refused + groups)

    return gathered([_described(ctx, name) for name in allowed], joined)


def _described(ctx: Context, name: str) -> Group | Awaitable[Group]:
    described: Group | Awaitable[Group] = ctx.node.groups.look(
        name, lambda shard, _now: shard.described(name, ctx.api_version), lambda error: _refused(name, error)
    )
    return described


def _refused(name: str, error: ErrorCode) -> Group:
    return Group(group_id=name, error_code=error.code)
