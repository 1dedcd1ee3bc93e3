"""ListTransactions (66), versions 0-2. The transactions that this broker coordinates.

Behaviour: only those whose ids the client may describe. While any of this broker's shards is loading the list would be
short, so the whole request is told COORDINATOR_LOAD_IN_PROGRESS. States that nobody knows are told back.
Notes: v0 filters by state and producer id; v1 by how long a transaction has been open; v2 by a pattern of RE2 that the
whole id has to match, INVALID_REGULAR_EXPRESSION when it is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.coordinators.transactions.describe import Wanted
from penstock.model.errors import NONE, NOT_COORDINATOR, ErrorCode, Refused
from penstock.protocol.messages.list_transactions import ListTransactionsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered

if TYPE_CHECKING:
    from penstock.protocol.messages.list_transactions import ListTransactionsRequest
    from penstock.server.doors import Context, Outcome


class Seen(NamedTuple):
    """What a shard knows, or why it cannot tell."""

    transactions: list[ListTransactionsResponse.TransactionState]
    error: ErrorCode = NONE


def handle(ctx: Context, request: ListTransactionsRequest) -> Outcome:
    try:
        wanted = Wanted.by(request)
    except Refused as refusal:
        return ListTransactionsResponse(error_code=refusal.error.code)

    def joined(shards: list[Seen]) -> ListTransactionsResponse:
        reply = ListTransactionsResponse(unknown_state_filters=list(wanted.unknown_states))
        for seen in shards:
            if seen.error is not NONE:
                return ListTransactionsResponse(error_code=seen.error.code)
            for each in seen.transactions:
                if ctx.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id):
                    reply.transaction_states.append(each)
        return reply

    shards = ctx.node.transactions.look_at_all(lambda shard, now: Seen(shard.listed(wanted, now)), _missing)
    return gathered(shards, joined)


def _missing(error: ErrorCode) -> Seen:
    """A shard that has moved away meanwhile has no transactions here."""
    assert error is not NONE, "a refusal has a reason"
    return Seen([], NONE if error is NOT_COORDINATOR else error)
