"""AssignReplicasToDirs (73), version 0. A broker tells which of its log directories holds which replica.

Behaviour: each replica is noted or refused on its own. One whose directory has failed meanwhile leaves its ISR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    return await decided(ctx, request, Operation.CLUSTER_ACTION, AssignReplicasToDirsResponse, _refused)


def _refused(error: ErrorCode, _why: str) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=error.code)
