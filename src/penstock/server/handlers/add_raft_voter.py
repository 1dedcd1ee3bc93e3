"""AddRaftVoter (80), versions 0-1. A node begins to vote in the metadata quorum.

Behaviour: the node has to run and to follow the log closely; it votes as soon as the change is in the log. A broker
forwards to the active controller.
Notes: v1 may answer before the change is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.add_raft_voter import AddRaftVoterResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: AddRaftVoterRequest) -> Outcome:
    if not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return AddRaftVoterResponse(
            error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message="Cluster authorization failed."
        )
    if not ctx.listener.for_controllers and not ctx.node.quorum.leading:
        return ctx.node.controller.forward(request, ctx)
    return ctx.node.quorum.add_voter(request)
