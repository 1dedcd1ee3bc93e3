"""ElectLeaders (43), versions 0-2. Gives partitions their preferred leaders back, or any leader if records may be lost.

Behaviour: no list of partitions means all that need an election; those that do not are left out of the reply then.
Notes: v0 knows only preferred leaders and has no error for the whole request, so that it stands with every partition;
v1 unclean elections (type 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import NONE
from penstock.protocol.messages.elect_leaders import ElectLeadersResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
    from penstock.server.doors import Context

Result = ElectLeadersResponse.ReplicaElectionResult
PartitionResult = ElectLeadersResponse.PartitionResult

_WHOLE_SINCE: Final = 1


async def handle(ctx: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    def refused(error: ErrorCode, why: str) -> ElectLeadersResponse:
        return _refused(request, error, why, for_all=ctx.api_version >= _WHOLE_SINCE)

    return await decided(ctx, request, Operation.ALTER, ElectLeadersResponse, refused)


def _refused(request: ElectLeadersRequest, error: ErrorCode, why: str, *, for_all: bool) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code if for_all else NONE.code,
        replica_election_results=[
            Result(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error.code, error_message=why or None)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )
