"""EndQuorumEpoch (54), versions 0-1. The leader of the metadata quorum resigns and names who should follow.

Behaviour: the first successor stands for election at once, the others each a little later.
Notes: v1 successors with directory ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: EndQuorumEpochRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return EndQuorumEpochResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    return ctx.node.quorum.end_epoch(request)
