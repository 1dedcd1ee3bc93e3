"""Vote (52), versions 0-2. A voter of the metadata quorum stands for election, or asks whether it would win.

Behaviour: one vote per epoch, on disk before it is on the wire; a pre-vote binds nobody. Errors name the epoch and its
leader, so that a candidate that was away learns of both.
Notes: v1 directory ids; v2 pre-votes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.vote import VoteResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.vote import VoteRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: VoteRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return VoteResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    return ctx.node.quorum.vote(request)
