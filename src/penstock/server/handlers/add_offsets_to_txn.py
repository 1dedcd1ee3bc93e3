"""AddOffsetsToTxn (25), versions 0-4. A transaction will commit offsets of a group.

Behaviour: takes the group's partition of the offsets topic into the transaction; the topic is made if this is the first
that is heard of any group. Producers of the newer protocol do without: TxnOffsetCommit adds the partition itself.
Notes: v2 knows PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before; v4 knows TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from penstock.coordinators.transactions.answers import add_offsets_refused, add_offsets_reply
from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import then

if TYPE_CHECKING:
    from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: AddOffsetsToTxnRequest) -> Outcome:
    if not ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return add_offsets_refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return add_offsets_refused(GROUP_AUTHORIZATION_FAILED)
    if ctx.node.metadata.image.topic(OFFSETS_TOPIC) is None:
        return _after_creation(ctx, request)
    return _asked(ctx, request)


async def _after_creation(ctx: Context, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    await ctx.node.groups.topic_made()
    reply = _asked(ctx, request)
    return reply if isinstance(reply, AddOffsetsToTxnResponse) else await reply


def _asked(
    ctx: Context, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    reply: AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse] = ctx.node.transactions.ask(
        request.transactional_id, request, ctx, add_offsets_refused
    )
    return then(reply, lambda done: add_offsets_reply(done, ctx.api_version))
