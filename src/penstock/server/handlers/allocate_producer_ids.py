"""AllocateProducerIds (67), version 0. A broker gets a block of producer ids that nobody had before.

Behaviour: STALE_BROKER_EPOCH for a process that another one has replaced. A block whose reply got lost is not given out
again: ids are plenty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    return await decided(ctx, request, Operation.CLUSTER_ACTION, AllocateProducerIdsResponse, _refused)


def _refused(error: ErrorCode, _why: str) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error.code)
