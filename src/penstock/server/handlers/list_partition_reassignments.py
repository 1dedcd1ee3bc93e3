"""ListPartitionReassignments (46), version 0. The moves of partitions that are under way.

Behaviour: all of them, or those of named partitions; a partition that is unknown or does not move is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    return await decided(ctx, request, Operation.DESCRIBE, ListPartitionReassignmentsResponse, _refused)


def _refused(error: ErrorCode, why: str) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=why or None)
