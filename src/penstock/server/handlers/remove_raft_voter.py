"""RemoveRaftVoter (81), version 0. A node stops voting in the metadata quorum.

Behaviour: node id and directory id have to fit. A leader that is removed resigns when the change is committed. A broker
forwards to the active controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: RemoveRaftVoterRequest) -> Outcome:
    if not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return RemoveRaftVoterResponse(
            error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message="Cluster authorization failed."
        )
    if not ctx.listener.for_controllers and not ctx.node.quorum.leading:
        return ctx.node.controller.forward(request, ctx)
    return ctx.node.quorum.remove_voter(request)
