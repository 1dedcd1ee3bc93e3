"""ListGroups (16), versions 0-5. The groups that this broker coordinates.

Behaviour: who may describe the cluster sees all, others the groups they may describe. While any of this broker's shards
is loading the list would be short, so the whole request is told COORDINATOR_LOAD_IN_PROGRESS.
Notes: v4 filters by state, v5 by type; neither minds upper and lower case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.model.errors import NONE, NOT_COORDINATOR, ErrorCode
from penstock.protocol.messages.list_groups import ListGroupsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered

if TYPE_CHECKING:
    from penstock.protocol.messages.list_groups import ListGroupsRequest
    from penstock.server.doors import Context, Outcome

Groups = list[ListGroupsResponse.ListedGroup]


class Seen(NamedTuple):
    """What a shard knows, or why it cannot tell."""

    groups: Groups
    error: ErrorCode = NONE


def handle(ctx: Context, request: ListGroupsRequest) -> Outcome:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    sees_all = ctx.may(Operation.DESCRIBE, ResourceType.CLUSTER)

    def joined(shards: list[Seen]) -> ListGroupsResponse:
        reply = ListGroupsResponse()
        for seen in shards:
            if seen.error is not NONE:
                return ListGroupsResponse(error_code=seen.error.code)
            for group in seen.groups:
                if states and group.group_state.lower() not in states:
                    continue
                if types and group.group_type.lower() not in types:
                    continue
                if sees_all or ctx.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
                    reply.groups.append(group)
        return reply

    return gathered(ctx.node.groups.look_at_all(lambda shard, now: Seen(shard.listed(now)), _missing), joined)


def _missing(error: ErrorCode) -> Seen:
    """A shard that has moved away meanwhile has no groups here."""
    assert error is not NONE, "a refusal has a reason"
    return Seen([], NONE if error is NOT_COORDINATOR else error)
