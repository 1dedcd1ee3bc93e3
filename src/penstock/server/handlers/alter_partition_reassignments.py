"""AlterPartitionReassignments (45), versions 0-1. Moves partitions to other replicas, or calls a move back.

Behaviour: answers when the move has begun, not when it is done: see ListPartitionReassignments. No replicas means that
a move under way is called back (NO_REASSIGNMENT_IN_PROGRESS when there is none). Another move replaces it.
Notes: v1 can forbid that a move changes the replication factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    def refused(error: ErrorCode, why: str) -> AlterPartitionReassignmentsResponse:
        return _refused(request, error, why)

    return await decided(ctx, request, Operation.ALTER, AlterPartitionReassignmentsResponse, refused)


def _refused(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode, why: str
) -> AlterPartitionReassignmentsResponse:
    """The error of the whole, and again of each partition: tools look there."""
    made = AlterPartitionReassignmentsResponse

    def partition(index: int) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
        return made.ReassignablePartitionResponse(
            partition_index=index, error_code=error.code, error_message=why or None
        )

    responses = [
        made.ReassignableTopicResponse(
            name=topic.name, partitions=[partition(each.partition_index) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return made(error_code=error.code, error_message=why or None, responses=responses)
