"""UpdateRaftVoter (82), version 0. A voter tells the leader where it listens now and what it speaks.

Behaviour: answered when the change is in the log; the voter asks again until the log says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: UpdateRaftVoterRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return UpdateRaftVoterResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    return ctx.node.quorum.update_voter(request)
