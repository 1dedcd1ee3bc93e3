"""Transactions from outside: ending what a producer has prepared."""

from __future__ import annotations

from penstock.client.admin.session import Session
from penstock.client.cluster_view import TRANSACTION
from penstock.client.errors import ClientError, NotReachable, TimedOutWaiting, TransactionFenced, refusal
from penstock.client.producer.transactions.messages import END_BUMPING, END_NEWEST, end
from penstock.client.producer.transactions.prepared import BUMPING_VERSION, PreparedTransaction, ProducerEpoch
from penstock.client.producer.transactions.reactions import Api, Reaction, to_answer
from penstock.model.errors import INVALID_TXN_STATE, ErrorCode, error_of


async def end_transaction(session: Session, prepared: PreparedTransaction, *, commit: bool) -> ProducerEpoch:
    """Ends it, in the protocol that it began with; asking twice for the same end is fine."""
    unchanged = ProducerEpoch(prepared.producer_id, prepared.producer_epoch)
    if prepared.empty:
        return unchanged
    request = end(prepared.transactional_id, unchanged, commits=commit)
    newest = END_BUMPING if prepared.transaction_version >= BUMPING_VERSION else END_NEWEST
    name = prepared.transactional_id

    async def ask(_: list[str]) -> dict[str, ProducerEpoch | ClientError]:
        try:
            reply = await session.coordinator(name, request, newest, TRANSACTION)
        except ClientError as failure:
            session.view.forget_coordinator(name, TRANSACTION)
            # Whether it took effect is unknown, and asking again is safe: that is what makes it known.
            lost = isinstance(failure, TimedOutWaiting) and failure.retriable
            return {name: NotReachable(failure.why, where=failure.where, retriable=True) if lost else failure}
        error = error_of(reply.error_code)
        if not reply.error_code:
            bumped = newest == END_BUMPING and reply.producer_id >= 0
            return {name: ProducerEpoch(reply.producer_id, reply.producer_epoch) if bumped else unchanged}
        if to_answer(Api.END, error) is Reaction.ELSEWHERE:
            session.view.forget_coordinator(name, TRANSACTION)
        return {name: _refused(name, error, commit)}

    return (await session.settled([name], ask)).checked()[name]


def _refused(name: str, error: ErrorCode, commit: bool) -> ClientError:
    where = f"transactional id {name!r}"
    if to_answer(Api.END, error) is not Reaction.FENCED:
        return refusal(error.code, None, where)
    wanted, other = ("committed", "aborted") if commit else ("aborted", "committed")
    words = f"it was not {wanted} now: the producer has begun again since, or the coordinator has forgotten it"
    if error is INVALID_TXN_STATE:
        words = f"it cannot be {wanted}: it is not open any more and was {other}, or its time was over"
    return TransactionFenced(
        f"{words}; whether its records are shown to read_committed tells how it ended",
        where=where,
        error=error,
        retriable=False,
    )
