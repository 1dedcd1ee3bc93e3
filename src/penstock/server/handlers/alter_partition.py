"""AlterPartition (56), versions 2-3. Leaders tell the controller who is in sync with them.

Behaviour: each partition is changed or refused on its own, in Kafka's order of checks; NEW_LEADER_ELECTED when the
change ended a reassignment and with it the asker's leadership.
Notes: v3 names the broker epochs of the wanted ISR, so that a follower's earlier life is not taken for its present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.alter_partition import AlterPartitionResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.alter_partition import AlterPartitionRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: AlterPartitionRequest) -> AlterPartitionResponse:
    return await decided(ctx, request, Operation.CLUSTER_ACTION, AlterPartitionResponse, _refused)


def _refused(error: ErrorCode, _why: str) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error.code)
