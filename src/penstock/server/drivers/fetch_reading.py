"""What one fetch finds in one partition: ask who may read how far, do the read, tell what a follower's fetch proves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.model.ids import NodeId, Offset
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.wire import Spans
from penstock.replication.fetch_session import FINAL, FULL
from penstock.replication.selection import Candidate, choose_replica
from penstock.replication.throttle import Throttle, lists
from penstock.server.drivers.partition_neighbours import LEADER_RATE

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.replication.fetch_session import FetchSession, Interest
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.storage.log import Log
    from penstock.storage.tickets import Read

Data = FetchResponse.PartitionData

_READ_COMMITTED: Final = 1
_ZSTD_SINCE: Final = 10
_FOLLOWERS_SERVE_SINCE: Final = 11
LEADERS_SINCE: Final = 16
_UNREAD: Final = frozenset({TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION})
"""What is refused before there is a log to look at; Kafka tells it without records rather than with empty ones."""
_ELSEWHERE: Final = frozenset({NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH})


class Ask:
    """One fetch request, with what is needed to answer it now or later."""

    __slots__ = (
        "allowed", "deadline", "full", "future", "listener", "max_bytes", "min_bytes", "rack", "read_committed",
        "replica", "replica_epoch", "scheduled", "session", "version",
    )  # fmt: skip

    def __init__(
        self, request: FetchRequest, version: int, session: FetchSession, allowed: Callable[[str], bool], listener: str
    ) -> None:
        self.session, self.version, self.allowed, self.listener = session, version, allowed, listener
        self.full = request.session_epoch in (FULL, FINAL)
        self.min_bytes, self.max_bytes = request.min_bytes, request.max_bytes
        self.read_committed = request.isolation_level == _READ_COMMITTED
        self.replica = replica_of(request)
        self.replica_epoch = request.replica_state.replica_epoch
        self.rack = request.rack_id
        self.future: asyncio.Future[FetchResponse] | None = None
        self.deadline = 0.0
        self.scheduled = False


def replica_of(request: FetchRequest) -> NodeId:
    """The broker that fetches; -1 for a consumer. Version 15 moved it into a struct."""
    state = request.replica_state
    return NodeId(state.replica_id if state.replica_id >= 0 else request.replica_id)


class Reading:
    """Reads for whoever asks. `by_rack` sends consumers to a replica near them."""

    def __init__(self, partitions: PartitionDriver, clock: Clock, *, by_rack: bool = False) -> None:
        self._partitions, self._clock, self._by_rack = partitions, clock, by_rack
        neighbours = partitions.neighbours
        self.throttle = Throttle(lambda: neighbours.throttled_rate(LEADER_RATE))

    def visit(
        self, ask: Ask, interest: Interest, budget: int, *, first: bool, fresh: bool, news_only: bool = False
    ) -> Data | None:
        """One partition's part of the answer. `fresh` the first time that this request looks at it.

        With `news_only` None says that there is nothing that a consumer does not know yet. A fetch that waits and
        looks again proves nothing about its follower that it has not proved before.
        """
        try:
            if not ask.session.by_id and not ask.allowed(interest.topic):
                return _failed(interest, TOPIC_AUTHORIZATION_FAILED)
            hosted = self._partitions.of_interest(interest)
            if ask.session.by_id and not ask.allowed(hosted.name.topic):
                return _failed(interest, TOPIC_AUTHORIZATION_FAILED)
            if ask.replica >= 0:
                return self._read_as_follower(ask, interest, hosted, budget, first, fresh)
            return self._read_as_consumer(ask, interest, hosted, budget, first, news_only)
        except Refused as refusal:
            return self._refused(ask, interest, refusal.error)
        except StorageFailed as failure:
            self._partitions.storage_failed(failure)
            return _failed(interest, KAFKA_STORAGE_ERROR)

    def _read_as_follower(
        self, ask: Ask, interest: Interest, hosted: Hosted, budget: int, first: bool, fresh: bool
    ) -> Data:
        state, log = hosted.state, hosted.require_log()
        state.check_read(interest.leader_epoch)
        if self._partitions.neighbours.is_outdated(ask.replica, ask.replica_epoch):
            raise Refused(NOT_LEADER_OR_FOLLOWER, "another process has registered as this broker")
        state.check_follower(ask.replica, ask.replica_epoch)
        diverging = _divergence(log, interest)
        if diverging is not None:
            return _found(interest, log, diverging)
        offset = Offset(interest.offset)
        if not log.log_start <= offset <= log.written:
            raise Refused(OFFSET_OUT_OF_RANGE)
        throttled = lists(hosted.settings.leader_replication_throttled_replicas, interest.partition, state.me)
        held = throttled and ask.replica not in state.isr and self.throttle.exceeded(self._clock.monotonic_ms())
        read = None
        if held:
            interest.unread = offset < log.written
        else:
            read = self._records(interest, log, log.written, budget, first)
        if fresh:
            start = Offset(interest.log_start)
            self._partitions.follower_fetched(hosted, ask.replica, ask.replica_epoch, offset, start, ask.session)
        found = _found(interest, log)  # after the fetch was told: it may have moved the high watermark
        if read is not None:
            found.records = Spans(read.spans)
            if throttled:
                self.throttle.count(read.size, self._clock.monotonic_ms())
        return found

    def _read_as_consumer(
        self, ask: Ask, interest: Interest, hosted: Hosted, budget: int, first: bool, news_only: bool
    ) -> Data | None:
        state, log = hosted.state, hosted.require_log()
        state.check_read(interest.leader_epoch, leader_only=ask.version < _FOLLOWERS_SERVE_SINCE)
        if ask.version < _ZSTD_SINCE and hosted.settings.compression_type == "zstd":
            raise Refused(UNSUPPORTED_COMPRESSION_TYPE)
        diverging = _divergence(log, interest)
        if diverging is not None:
            return _found(interest, log, diverging)
        offset = Offset(interest.offset)
        if not log.log_start <= offset <= log.written:
            raise Refused(OFFSET_OUT_OF_RANGE)
        if self._by_rack and ask.rack and state.followers:
            nearest = self._nearest(hosted, log, ask.rack, offset)
            if nearest != state.me:
                data = _found(interest, log)
                data.preferred_read_replica = nearest
                interest.unread = False
                return data
        limit = log.last_stable if ask.read_committed else log.committed
        read = self._records(interest, log, limit, budget, first)
        if read is None and news_only and interest.knows(log.committed, log.log_start):
            return None
        data = _found(interest, log)
        data.aborted_transactions = [] if ask.read_committed else None
        if read is None:
            return data
        data.records = Spans(read.spans)
        if ask.read_committed:
            data.aborted_transactions = [
                FetchResponse.AbortedTransaction(producer_id=producer, first_offset=start)
                for producer, start in log.aborted(offset, read.end)
            ]
        return data

    @staticmethod
    def _records(interest: Interest, log: Log, limit: Offset, budget: int, first: bool) -> Read | None:
        """What there is to read below `limit` and within the budget; the interest remembers if there was more."""
        offset = interest.offset
        if offset >= limit:
            interest.unread = False
            return None
        max_bytes = min(interest.max_bytes, budget)
        read = None
        if first or max_bytes > 0:
            read = log.read(offset, max_bytes=max_bytes, limit=limit, at_least_one=first)
        if read is None or not read.size:
            interest.unread = True
            return None
        interest.unread = False
        return read

    def _nearest(self, hosted: Hosted, log: Log, rack: str, offset: Offset) -> NodeId:
        """The replica that a consumer in `rack` should read from; this node when it is as good as any."""
        state, neighbours = hosted.state, self._partitions.neighbours
        leader = Candidate(state.me, neighbours.rack_of(state.me), log.log_start, log.written, self._clock.now_ms())
        others = (
            Candidate(node, neighbours.rack_of(node), each.log_start, each.end, each.caught_up_at)
            for node, each in state.followers.items()
            if node in state.isr and neighbours.is_alive(node)
        )
        return choose_replica(rack, offset, leader, others)

    def _refused(self, ask: Ask, interest: Interest, error: ErrorCode) -> Data:
        data = _failed(interest, error)
        if error in _ELSEWHERE and ask.version >= LEADERS_SINCE:
            leader, epoch = self._partitions.leader_of(interest.topic, interest.topic_id, interest.partition)
            data.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        return data


def _divergence(log: Log, interest: Interest) -> tuple[int, int] | None:
    """(epoch, end offset) to truncate to when the fetcher's last epoch shows that its log went another way."""
    if interest.last_fetched_epoch < 0:
        return None
    epoch, end = log.epochs.end_of(interest.last_fetched_epoch)
    if end < 0:
        raise Refused(OFFSET_OUT_OF_RANGE)
    if epoch < interest.last_fetched_epoch or end < interest.offset:
        return epoch, end
    return None


def _found(interest: Interest, log: Log, diverging: tuple[int, int] | None = None) -> Data:
    data = Data(
        partition_index=interest.partition,
        error_code=NONE.code,
        high_watermark=log.committed,
        last_stable_offset=log.last_stable,
        log_start_offset=log.log_start,
        records=b"",
    )
    if diverging is not None:
        data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return data


def _failed(interest: Interest, error: ErrorCode) -> Data:
    """An error tells no ends, not even of a log that has them: a client asks ListOffsets where it can go on."""
    unread = error in _UNREAD
    return Data(
        partition_index=interest.partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=[] if unread else None,
        records=None if unread else b"",
    )
