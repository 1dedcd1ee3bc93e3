"""DescribeTransactions and ListTransactions: how transactions stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.coordinators.decision import Moment
from penstock.coordinators.transactions.requests import Partition
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import NAMES_OF_NO_STATUS, STATUS_NAMES, Status, Transaction
from penstock.model.errors import INVALID_REGULAR_EXPRESSION, INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, Refused
from penstock.model.patterns import NotRe2, Re2Pattern, compile_re2
from penstock.protocol.messages.describe_transactions import DescribeTransactionsResponse
from penstock.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Described = DescribeTransactionsResponse.TransactionState
Listed = ListTransactionsResponse.TransactionState

_STATUS_BY_NAME = {name: status for status, name in STATUS_NAMES.items()}


def described(table: TransactionTable, transactional_id: str) -> Described:
    """One transaction, with the partitions that have no marker yet."""
    if not transactional_id:
        return Described(error_code=INVALID_REQUEST.code)
    transaction = table.transactions.get(transactional_id)
    if transaction is None:
        return Described(error_code=TRANSACTIONAL_ID_NOT_FOUND.code, transactional_id=transactional_id)
    state = transaction.state
    return Described(
        transactional_id=transactional_id,
        transaction_state=STATUS_NAMES[state.status],
        transaction_timeout_ms=state.timeout_ms,
        transaction_start_time_ms=state.started_ms,
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        topics=_topics(table.unmarked.get(transactional_id, state.partitions)),
    )


def _topics(partitions: Iterable[Partition]) -> list[DescribeTransactionsResponse.TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return [
        DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()
    ]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which transactions a ListTransactions asks for. It goes to every shard, so it is read once."""

    statuses: frozenset[Status] | None
    unknown_states: tuple[str, ...]
    producer_ids: frozenset[int]
    longer_than_ms: int
    pattern: Re2Pattern[str] | None

    @classmethod
    def by(cls, request: ListTransactionsRequest) -> Wanted:
        """Refused when the pattern is none."""
        named = [_STATUS_BY_NAME[name] for name in request.state_filters if name in _STATUS_BY_NAME]
        known = _STATUS_BY_NAME.keys() | NAMES_OF_NO_STATUS
        return cls(
            frozenset(named) if request.state_filters else None,
            tuple(name for name in request.state_filters if name not in known),
            frozenset(request.producer_id_filters),
            request.duration_filter,
            _pattern(request.transactional_id_pattern),
        )

    def wants(self, transaction: Transaction, now: Moment) -> bool:
        """A transaction that has not started counts as one that takes very long, as in Kafka."""
        state = transaction.state
        if self.producer_ids and state.producer_id not in self.producer_ids:
            return False
        if self.statuses is not None and state.status not in self.statuses:
            return False
        if self.longer_than_ms >= 0 and now.wall - state.started_ms <= self.longer_than_ms:
            return False
        return self.pattern is None or self.pattern.fullmatch(transaction.id) is not None


def _pattern(text: str | None) -> Re2Pattern[str] | None:
    if not text:
        return None
    try:
        return compile_re2(text)
    except NotRe2 as broken:
        raise Refused(INVALID_REGULAR_EXPRESSION, str(broken)) from None


def listed(table: TransactionTable, wanted: Wanted, now: Moment) -> Iterator[Listed]:
    """The transactions of a shard that are asked for."""
    for transaction in table.transactions.values():
        if wanted.wants(transaction, now):
            yield Listed(
                transactional_id=transaction.id,
                producer_id=transaction.state.producer_id,
                transaction_state=STATUS_NAMES[transaction.state.status],
            )
