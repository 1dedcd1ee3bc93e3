"""FetchSnapshot (59), versions 0-1. A replica of the metadata log reads a piece of a snapshot.

Behaviour: only the leader serves; the piece begins at any byte, so it need not be whole batches.
Notes: v1 directory id and endpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.fetch_snapshot import FetchSnapshotRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: FetchSnapshotRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return FetchSnapshotResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    return ctx.node.quorum.fetch_snapshot(ctx, request)
