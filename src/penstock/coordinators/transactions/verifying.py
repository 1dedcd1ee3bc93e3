"""A leader asks whether a producer's transaction knows a partition. Nothing changes, and what settles does not matter.

Were it refused while a record is under way, a producer that does nothing wrong would be held up (KAFKA-14904).
"""

from __future__ import annotations

from penstock.coordinators.decision import Decision
from penstock.coordinators.transactions.requests import AddPartitions, PartitionsAdded
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import PREPARED, State
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    NONE,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    ErrorCode,
)


def decide_verify(table: TransactionTable, request: AddPartitions) -> Decision:
    """Which of the partitions belong to the transaction."""
    transaction = table.transactions.get(request.transactional_id)
    error = _check(None if transaction is None else transaction.state, request)
    if error is not NONE or transaction is None:
        return Decision(reply=PartitionsAdded.all_with(error, request.partitions))
    known = transaction.state.partitions
    return Decision(
        reply=PartitionsAdded(
            {place: NONE if place in known else TRANSACTION_ABORTABLE for place in request.partitions}
        )
    )


def _check(state: State | None, request: AddPartitions) -> ErrorCode:
    if not request.transactional_id:
        return INVALID_REQUEST
    if state is None or state.producer_id != request.producer_id:
        return INVALID_PRODUCER_ID_MAPPING
    if state.epoch != request.producer_epoch:
        return PRODUCER_FENCED
    return CONCURRENT_TRANSACTIONS if state.status in PREPARED else NONE
