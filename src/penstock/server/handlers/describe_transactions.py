"""DescribeTransactions (65), version 0. How transactions stand, by transactional id.

Behaviour: each id has its own result. Of a transaction that ends only the partitions that lack their marker are told,
and of any only those whose topics the client may describe.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from penstock.model.errors import TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode
from penstock.protocol.messages.describe_transactions import DescribeTransactionsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
    from penstock.server.doors import Context, Outcome

State = DescribeTransactionsResponse.TransactionState


def handle(ctx: Context, request: DescribeTransactionsRequest) -> Outcome:
    def joined(states: list[State]) -> DescribeTransactionsResponse:
        for state in states:
            state.topics = [topic for topic in state.topics if ctx.may_describe(topic.topic)]
        return DescribeTransactionsResponse(transaction_states=states)

    return gathered([_described(ctx, each) for each in request.transactional_ids], joined)


def _described(ctx: Context, transactional_id: str) -> State | Awaitable[State]:
    if not ctx.allow(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _refused(transactional_id, TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    described: State | Awaitable[State] = ctx.node.transactions.look(
        transactional_id,
        lambda shard, _now: shard.describe(transactional_id),
        lambda error: _refused(transactional_id, error),
    )
    return described


def _refused(transactional_id: str, error: ErrorCode) -> State:
    return State(transactional_id=transactional_id, error_code=error.code)
