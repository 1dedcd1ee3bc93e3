"""InitProducerId (22), versions 0-5. Hands an idempotent producer an id that nobody had before.

Behaviour: who may write to any topic may have one. A producer that lost its way (v3: names its id and epoch) simply
gets a new id at epoch 0. Transactional ids need a transaction coordinator, which this broker does not have yet:
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, as from FindCoordinator. While no controller can be asked for the next block of
ids it is COORDINATOR_LOAD_IN_PROGRESS, after which producers try again.
Notes: v6 (two-phase commit) exists but is not advertised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Refused,
)
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        allowed = ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        return _refused(
            (INVALID_REQUEST if allowed and not transactional_id else TRANSACTIONAL_ID_AUTHORIZATION_FAILED).code
        )
    if not _may_write(ctx):
        return _refused(CLUSTER_AUTHORIZATION_FAILED.code)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return _refused(INVALID_REQUEST.code)  # an id without an epoch, or the other way round
    try:
        producer_id = ctx.node.producer_ids.take()
        if not isinstance(producer_id, int):
            producer_id = await producer_id
    except Refused:
        return _refused(COORDINATOR_LOAD_IN_PROGRESS.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _may_write(ctx: Context) -> bool:
    """Whether the client may write idempotently anywhere, or to some topic: every default Java producer asks."""
    if ctx.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or ctx.may_any(Operation.WRITE, ResourceType.TOPIC):
        return True
    return ctx.allow(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)  # it was no, and now that is told


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
