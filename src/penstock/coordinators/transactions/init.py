"""InitProducerId: a producer begins, or begins anew, and every other producer of its transactional id is fenced.

The order of the checks is Kafka's; each row that is named in `decide_init` answers before the next one is looked at.
"""

from __future__ import annotations

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.answers import init_refused
from penstock.coordinators.transactions.outcomes import decide_fenced_abort, fencing_outcome
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.settings import TransactionSettings
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import (
    EPOCH_LAST,
    EPOCH_MAX,
    NEVER_TIMES_OUT_MS,
    NO_EPOCH,
    NO_PRODUCER,
    State,
    Status,
    Transaction,
)
from penstock.coordinators.transactions.transitions import emptied, first, repeated, rotated
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    NONE,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def check_init(settings: TransactionSettings, request: InitProducerIdRequest) -> ErrorCode:
    """What is wrong with a request that names a transactional id, whoever coordinates it.

    Ask this before looking for the coordinator: Kafka does so too.
    """
    if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH):
        return INVALID_REQUEST
    if not request.transactional_id:
        return INVALID_REQUEST
    if request.enable_2pc and not settings.two_phase_commit:
        return TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        return UNSUPPORTED_VERSION
    if not request.enable_2pc and not 0 < request.transaction_timeout_ms <= settings.timeout_max_ms:
        return INVALID_TRANSACTION_TIMEOUT
    return NONE


def decide_init(table: TransactionTable, request: InitProducerIdRequest, now: Moment) -> Decision:
    """Hands out a producer id with an epoch that nobody had; a transaction that goes on is aborted first."""
    error = check_init(table.settings, request)
    if error is not NONE:
        return Decision(reply=init_refused(error))
    transactional_id = request.transactional_id
    assert transactional_id is not None, "it was checked"
    transaction = table.transactions.get(transactional_id)
    if transaction is None:
        return _decide_first(table, transactional_id, request, now)
    if transaction.settling(now):
        return Decision(reply=init_refused(CONCURRENT_TRANSACTIONS))
    if not _names_a_known_producer(transaction.state, request):
        return Decision(reply=init_refused(PRODUCER_FENCED))
    if transaction.state.status is Status.ONGOING:
        return _decide_fence(table, transaction, now)
    return _decide_anew(table, transaction, request, now)


def _decide_first(
    table: TransactionTable, transactional_id: str, request: InitProducerIdRequest, now: Moment
) -> Decision:
    """Whatever the producer names: the id may have expired, or never been here."""
    producer_id = table.next_producer_id()
    if producer_id is None:
        return Decision(reply=init_refused(COORDINATOR_LOAD_IN_PROGRESS))
    return _begun(table, transactional_id, first(producer_id, _timeout_ms(request), now.wall))


def _names_a_known_producer(state: State, request: InitProducerIdRequest) -> bool:
    """Whether the producer id that is named, if any, is ours, or was until its epochs were used up."""
    named = request.producer_id
    if named in (NO_PRODUCER, state.producer_id) or state.epoch == NO_EPOCH:
        return True
    return named == state.previous_producer_id and request.producer_epoch >= EPOCH_LAST


def _decide_fence(table: TransactionTable, transaction: Transaction, now: Moment) -> Decision:
    """Its transaction goes on: it is aborted, and the producer comes back for an epoch.

    The epoch that is named is not compared here, as in Kafka: a late producer can abort a living transaction. That is
    no harm to anybody's data.
    """
    outcome = fencing_outcome(table, transaction.state)
    if outcome is None:
        return Decision(reply=init_refused(COORDINATOR_LOAD_IN_PROGRESS))
    return decide_fenced_abort(table, transaction, outcome, init_refused(CONCURRENT_TRANSACTIONS), now)


def _decide_anew(
    table: TransactionTable, transaction: Transaction, request: InitProducerIdRequest, now: Moment
) -> Decision:
    state, timeout_ms = transaction.state, _timeout_ms(request)
    named, last = request.producer_epoch, transaction.last_epoch
    nothing_named = request.producer_id == NO_PRODUCER
    repeats = named == last
    # Epoch 32767 is never handed out, not even to a producer that repeats itself.
    if state.exhausted and (nothing_named or named == state.epoch or (repeats and state.epoch == EPOCH_MAX)):
        producer_id = table.next_producer_id()
        if producer_id is None:
            return Decision(reply=init_refused(COORDINATOR_LOAD_IN_PROGRESS))
        transaction.last_epoch_told = NO_EPOCH if nothing_named else named
        return _begun(table, transaction.id, rotated(state, producer_id, timeout_ms, now.wall))
    if nothing_named:
        transaction.last_epoch_told = NO_EPOCH
        return _begun(table, transaction.id, emptied(state, state.epoch + 1, timeout_ms, now.wall))
    if state.epoch in (named, NO_EPOCH):
        transaction.last_epoch_told = state.epoch
        return _begun(table, transaction.id, emptied(state, state.epoch + 1, timeout_ms, now.wall))
    if repeats:
        transaction.last_epoch_told = last
        return _begun(table, transaction.id, repeated(state, timeout_ms, now.wall))
    return Decision(reply=init_refused(PRODUCER_FENCED))


def _begun(table: TransactionTable, transactional_id: str, state: State) -> Decision:
    reply = InitProducerIdResponse(producer_id=state.producer_id, producer_epoch=state.epoch)
    return Decision([state_record(transactional_id, state, table.value_version)], reply)


def _timeout_ms(request: InitProducerIdRequest) -> int:
    return NEVER_TIMES_OUT_MS if request.enable_2pc else request.transaction_timeout_ms
