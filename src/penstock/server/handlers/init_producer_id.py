"""InitProducerId (22), versions 0-5. Hands a producer an id, and to a transactional one its epoch.

Behaviour: without a transactional id, who may write to any topic may have an id that nobody had before; one that lost
its way (v3: names its id and epoch) simply gets another at epoch 0. With one, the coordinator of that id answers: it
aborts what an earlier producer left open (CONCURRENT_TRANSACTIONS until that is done) and raises the epoch, so that the
earlier one is fenced. While no controller can be asked for the next block of ids it is COORDINATOR_LOAD_IN_PROGRESS,
after which producers try again.
Notes: below v4 PRODUCER_FENCED is told as INVALID_PRODUCER_EPOCH; v6 (two-phase commit) exists but is not advertised.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST,
    NONE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode,
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
        if not _may_use(ctx, transactional_id, two_phase=request.enable_2pc):
            return _refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not _may_write(ctx):
        return _refused(CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(INVALID_REQUEST)  # an id without an epoch, or the other way round
    if transactional_id is not None:
        return await _of_transactions(ctx, transactional_id, request)
    try:
        producer_id = ctx.node.producer_ids.take()
        if not isinstance(producer_id, int):
            producer_id = await producer_id
    except Refused:
        return _refused(COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _of_transactions(
    ctx: Context, transactional_id: str, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """The coordinator may need a producer id, and cannot wait for one."""
    from penstock.coordinators.transactions.answers import init_refused, init_reply
    from penstock.coordinators.transactions.init import check_init

    error = check_init(ctx.node.transactions.settings, request)
    if error is not NONE:
        return init_reply(_refused(error), ctx.api_version)
    with suppress(Refused):  # whether none is needed is for the coordinator to say
        await ctx.node.producer_ids.at_hand()
    reply: InitProducerIdResponse | Awaitable[InitProducerIdResponse] = ctx.node.transactions.ask(
        transactional_id, request, ctx, init_refused
    )
    if not isinstance(reply, InitProducerIdResponse):
        reply = await reply
    return init_reply(reply, ctx.api_version)


def _may_use(ctx: Context, transactional_id: str, *, two_phase: bool) -> bool:
    if not ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return False
    return not two_phase or ctx.allow(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, transactional_id)


def _may_write(ctx: Context) -> bool:
    """Whether the client may write idempotently anywhere, or to some topic: every default Java producer asks."""
    if ctx.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or ctx.may_any(Operation.WRITE, ResourceType.TOPIC):
        return True
    return ctx.allow(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)  # it was no, and now that is told


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
