"""EndTxn: a producer commits or aborts. The reply leaves when that is committed, before any marker is written.

Up to version 4 the epoch stays. Whoever asks twice cannot be told from whoever asks for the next transaction:

| state | commit | abort |
|---|---|---|
| Ongoing | PrepareCommit | PrepareAbort |
| CompleteCommit | done | 48 |
| CompleteAbort | 48 | done |
| Empty | 48 | 48 |

From version 5 on every end raises the epoch. *Current* is whoever has our epoch, *repeated* whoever has the one before,
if an end has raised it since. Apache Kafka looks at the numbers alone: there a producer that was fenced by another one
(whose transactions are classic, so that the epoch is still the next) is handed the epoch of that other one.

| state | commit, current | commit, repeated | abort, current | abort, repeated |
|---|---|---|---|---|
| Ongoing | PrepareCommit | 90 | PrepareAbort | 90 |
| Empty | 48 | 90 | PrepareAbort of nothing | 90 |
| CompleteCommit | 48 | done | PrepareAbort of nothing | 48 |
| CompleteAbort | 48 | 48 | PrepareAbort of nothing | done |

Nothing is aborted when a client cannot know whether a failed Produce had added its partition. An id that settles
answers 51, in version 5 before anything else: else the abort of nothing right behind a commit would fence itself
(KAFKA-18464).
"""

from __future__ import annotations

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.answers import end_refused
from penstock.coordinators.transactions.outcomes import classic_outcome, decide_client_end, raised_outcome
from penstock.coordinators.transactions.records import FLEXIBLE_VALUE
from penstock.coordinators.transactions.requests import BUMPS_EPOCH_SINCE
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import EPOCH_LAST, NO_PRODUCER, State, Status, Transaction
from penstock.coordinators.transactions.transitions import Outcome
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TXN_STATE,
    NONE,
    PRODUCER_FENCED,
    ErrorCode,
)
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse


def decide_end(table: TransactionTable, request: EndTxnRequest, api_version: int, now: Moment) -> Decision:
    """Decides the outcome, or says which it is."""
    if not request.transactional_id:
        return Decision(reply=end_refused(INVALID_REQUEST))
    transaction = table.transactions.get(request.transactional_id)
    if transaction is None:
        return Decision(reply=end_refused(INVALID_PRODUCER_ID_MAPPING))
    if api_version < BUMPS_EPOCH_SINCE:
        return _decide_classic(table, transaction, request, now)
    return _decide_raising(table, transaction, request, now)


# Up to version 4


def _decide_classic(table: TransactionTable, transaction: Transaction, request: EndTxnRequest, now: Moment) -> Decision:
    state = transaction.state
    if state.producer_id != request.producer_id:
        return Decision(reply=end_refused(INVALID_PRODUCER_ID_MAPPING))
    if state.epoch != request.producer_epoch:
        return Decision(reply=end_refused(PRODUCER_FENCED))
    if transaction.settling(now):
        return Decision(reply=end_refused(CONCURRENT_TRANSACTIONS))
    if state.status is Status.ONGOING:
        outcome = classic_outcome(state, commits=request.committed)
        return decide_client_end(table, transaction, outcome, EndTxnResponse(), now)
    if state.status is _completed_by(request):
        return Decision(reply=EndTxnResponse())
    return Decision(reply=end_refused(INVALID_TXN_STATE))


def _completed_by(request: EndTxnRequest) -> Status:
    return Status.COMPLETE_COMMIT if request.committed else Status.COMPLETE_ABORT


# From version 5 on


def _decide_raising(table: TransactionTable, transaction: Transaction, request: EndTxnRequest, now: Moment) -> Decision:
    state = transaction.state
    if transaction.settling(now):
        return Decision(reply=end_refused(CONCURRENT_TRANSACTIONS))
    error = _check_raising(transaction, request)
    if error is not NONE:
        return Decision(reply=end_refused(error))
    if not _is_current(state, request):
        # It has ended as the producer wants: its reply was lost.
        return Decision(reply=EndTxnResponse(producer_id=state.producer_id, producer_epoch=state.epoch))
    if state.exhausted and table.value_version < FLEXIBLE_VALUE:
        # Records of this cluster cannot hold the next producer id, and nothing else would be safe: the producer has to
        # begin anew. Clients speak this version from a transaction.version on at which that never happens.
        return Decision(reply=end_refused(PRODUCER_FENCED))
    outcome = raised_outcome(table, state, commits=request.committed)
    if outcome is None:
        return Decision(reply=end_refused(COORDINATOR_LOAD_IN_PROGRESS))
    return decide_client_end(table, transaction, outcome, _ended(state, outcome), now)


def _check_raising(transaction: Transaction, request: EndTxnRequest) -> ErrorCode:
    state = transaction.state
    repeats_at_the_end = _repeats_at_the_last_epoch(state, request)
    if state.producer_id != request.producer_id and not repeats_at_the_end:
        return INVALID_PRODUCER_ID_MAPPING
    if _is_current(state, request):
        # Only what goes on can be committed; what does not can be aborted whatever it is.
        return NONE if state.status is Status.ONGOING or not request.committed else INVALID_TXN_STATE
    repeats = state.epoch == request.producer_epoch + 1 and transaction.last_epoch == request.producer_epoch
    if not repeats and not repeats_at_the_end:
        return PRODUCER_FENCED
    if state.status in (Status.ONGOING, Status.EMPTY):
        return PRODUCER_FENCED
    return NONE if state.status is _completed_by(request) else INVALID_TXN_STATE


def _is_current(state: State, request: EndTxnRequest) -> bool:
    return state.producer_id == request.producer_id and state.epoch == request.producer_epoch


def _repeats_at_the_last_epoch(state: State, request: EndTxnRequest) -> bool:
    """Its producer id was used up with that transaction, and the reply that told the next one was lost."""
    return (
        request.producer_id == state.previous_producer_id != state.producer_id
        and request.producer_epoch == EPOCH_LAST
        and state.epoch == 0
    )


def _ended(state: State, outcome: Outcome) -> EndTxnResponse:
    """With which producer id and epoch the producer goes on; 32767 is never told."""
    if outcome.next_producer_id != NO_PRODUCER:
        return EndTxnResponse(producer_id=outcome.next_producer_id, producer_epoch=0)
    return EndTxnResponse(producer_id=state.producer_id, producer_epoch=outcome.epoch)
