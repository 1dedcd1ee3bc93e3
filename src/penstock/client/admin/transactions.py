"""Transactions from outside: listing, describing, ending what was prepared, fencing producers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.client.admin.session import Results, Session, check
from penstock.client.cluster_view import TRANSACTION
from penstock.client.errors import (
    BadSetting,
    BrokerRefused,
    ClientError,
    NotReachable,
    TimedOutWaiting,
    TransactionFenced,
    link_failure,
    refusal,
)
from penstock.client.producer.transactions.messages import END_BUMPING, END_NEWEST, INIT_NEWEST, end, initialise
from penstock.client.producer.transactions.prepared import BUMPING_VERSION, PreparedTransaction, ProducerEpoch
from penstock.client.producer.transactions.reactions import Api, Reaction, to_answer
from penstock.model.errors import (
    INVALID_REGULAR_EXPRESSION,
    INVALID_TXN_STATE,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNSUPPORTED_VERSION,
    ErrorCode,
    error_of,
)
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
from penstock.transport.dial import LinkError

_LIST_TRANSACTIONS: Final = 66
_DURATION_SINCE, _PATTERN_SINCE = 1, 2
_ANY_DURATION: Final = -1


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id that a coordinator knows, with its state: Empty, Ongoing, PrepareCommit, PrepareAbort,
    CompleteCommit or CompleteAbort."""

    id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """How the last transaction of a transactional id stands. `started_ms` is None before the first one; `partitions`
    are those that have not been told how it ended."""

    id: str
    coordinator: int
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: list[TopicPartition]


async def list_transactions(
    session: Session,
    *,
    states: Iterable[str],
    producer_ids: Iterable[int],
    longer_than_ms: int | None,
    pattern: str | None,
) -> list[TransactionListing]:
    """The transactional ids of all brokers; each knows those that it coordinates, and filters them itself."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=_ANY_DURATION if longer_than_ms is None else longer_than_ms,
        transactional_id_pattern=pattern or None,
    )

    async def ask(node: int) -> list[TransactionListing]:
        await _check_filters(session, node, request)
        reply = await session.broker(node, request)
        if reply.error_code == INVALID_REGULAR_EXPRESSION.code:
            raise BadSetting(f"{pattern!r} is no regular expression of RE2", error=INVALID_REGULAR_EXPRESSION)
        check(reply.error_code, None, f"the transactions of broker {node}")
        for unknown in reply.unknown_state_filters:
            raise BadSetting(f"transactions have no state {unknown!r}")
        return [
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node)
            for each in reply.transaction_states
        ]

    listed = (await session.by_broker(None, ask)).checked()
    found = {each.id: each for transactions in listed.values() for each in transactions}
    return [found[name] for name in sorted(found)]


async def _check_filters(session: Session, node: int, request: ListTransactionsRequest) -> None:
    """A filter that an old broker does not know must not be left out: more would be listed than was asked for."""
    needed = _DURATION_SINCE if request.duration_filter != _ANY_DURATION else 0
    needed = _PATTERN_SINCE if request.transactional_id_pattern is not None else needed
    try:
        served = (await session.view.link(node)).newest(_LIST_TRANSACTIONS)
    except LinkError as broken:
        raise link_failure(broken) from broken
    if served < needed:
        what, since = ("a pattern", "4.1") if needed == _PATTERN_SINCE else ("how long they are open", "3.8")
        raise BrokerRefused(
            f"broker {node} cannot look for transactions by {what}; Apache Kafka does since {since}",
            error=UNSUPPORTED_VERSION,
        )


async def describe_transactions(session: Session, transactional_ids: Iterable[str]) -> Results[str, TransactionInfo]:
    async def ask(node: int, names: list[str]) -> Mapping[str, TransactionInfo | ClientError]:
        reply = await session.broker(node, DescribeTransactionsRequest(transactional_ids=names))
        return {
            each.transactional_id: _refused(each.transactional_id, each.error_code)
            if each.error_code
            else _info(each, node)
            for each in reply.transaction_states
        }

    return await session.by_coordinator(transactional_ids, ask, TRANSACTION)


def _info(found: DescribeTransactionsResponse.TransactionState, node: int) -> TransactionInfo:
    return TransactionInfo(
        found.transactional_id,
        node,
        found.transaction_state,
        found.producer_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
        [TopicPartition(topic.topic, index) for topic in found.topics for index in topic.partitions],
    )


async def fence_producers(session: Session, transactional_ids: Iterable[str]) -> Results[str, ProducerEpoch]:
    """Begins as a new producer would, and writes nothing: what is open is aborted, who had the id is refused."""
    return await begin_producers(session, dict.fromkeys(transactional_ids), session.request_timeout_ms)


async def begin_producers(
    session: Session, transactional_ids: Mapping[str, ProducerEpoch | None], timeout_ms: int
) -> Results[str, ProducerEpoch]:
    """As a new producer of each id would, or as the one that is named and wants another epoch."""

    async def begin(node: int, name: str) -> ProducerEpoch | ClientError:
        reply = await session.broker(node, initialise(name, timeout_ms, transactional_ids[name]), INIT_NEWEST)
        if reply.error_code:
            return _refused(name, reply.error_code)
        return ProducerEpoch(reply.producer_id, reply.producer_epoch)

    async def ask(node: int, names: list[str]) -> Mapping[str, ProducerEpoch | ClientError]:
        # A coordinator waits for its log with each of them, so they wait together.
        begun = await asyncio.gather(*(begin(node, name) for name in names))
        return dict(zip(names, begun, strict=True))

    return await session.by_coordinator(transactional_ids, ask, TRANSACTION)


def _refused(name: str, code: int) -> ClientError:
    if code == TRANSACTIONAL_ID_NOT_FOUND.code:
        return refusal(code, f"transactional id {name!r} does not exist", "")
    return refusal(code, None, f"transactional id {name!r}")


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
        return {name: _end_refused(name, error, commit)}

    return (await session.settled([name], ask)).checked()[name]


def _end_refused(name: str, error: ErrorCode, commit: bool) -> ClientError:
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
