"""EndTxn (26), versions 0-5. Commits or aborts a transaction.

Behaviour: answered when the outcome is decided and committed; markers follow, and until they are written the id answers
CONCURRENT_TRANSACTIONS. Up to v4 the producer's epoch stays, from v5 on it is raised and told.
Notes: v2 knows PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before; v4 knows TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.coordinators.transactions.answers import end_refused, end_reply
from penstock.model.errors import TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import then

if TYPE_CHECKING:
    from penstock.protocol.messages.end_txn import EndTxnRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: EndTxnRequest) -> Outcome:
    transactional_id = request.transactional_id
    if not ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return end_refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    reply = ctx.node.transactions.ask(transactional_id, request, ctx, end_refused)
    return then(reply, lambda done: end_reply(done, ctx.api_version))
