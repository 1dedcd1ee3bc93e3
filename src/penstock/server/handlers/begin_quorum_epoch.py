"""BeginQuorumEpoch (53), versions 0-1. The leader of the metadata quorum tells a voter that it leads.

Behaviour: an older epoch is fenced; the reply names the newest epoch and leader this node knows.
Notes: v1 directory ids and the leader's endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: BeginQuorumEpochRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return BeginQuorumEpochResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    return ctx.node.quorum.begin_epoch(request)
