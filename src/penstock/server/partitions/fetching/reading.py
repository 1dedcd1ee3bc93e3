"""What one fetch finds in one partition: ask who may read how far, do the read, tell what a follower's fetch proves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    Corrupt,
    ErrorCode,
    Refused,
    StorageFailed,
)
from penstock.model.ids import NodeId, Offset
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.wire import Spans
from penstock.replication.fetch_session import FINAL, FULL, READ, UNREAD
from penstock.replication.reading import Diverging, decide_consumer_read, decide_follower_read
from penstock.replication.selection import nearest_replica
from penstock.replication.throttle import Throttle, lists
from penstock.server.partitions.neighbours import LEADER_RATE

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.replication.fetch_session import FetchSession, Interest
    from penstock.replication.isr import Follower
    from penstock.server.doors import Toll
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.storage.log import Log
    from penstock.storage.reading import Read

    Session = FetchSession["Hosted", "Ask"]
    Wish = Interest["Hosted", "Ask"]
    """An interest of a fetch here."""

Data = FetchResponse.PartitionData

_READ_COMMITTED: Final = 1
DIVERGENCE_SINCE: Final = 12
LEADERS_SINCE: Final = 16
_UNREAD: Final = frozenset({TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION})
"""What is refused before there is a log to look at; Kafka tells it without records rather than with empty ones."""
_ELSEWHERE: Final = frozenset({NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH})


class Ask:
    """One fetch request, with what is needed to answer it now or later."""

    __slots__ = (
        "allowed", "deadline", "full", "future", "listener", "look_again", "max_bytes", "min_bytes", "rack",
        "read_committed", "replica", "replica_epoch", "scheduled", "session", "toll", "version",
    )  # fmt: skip

    def __init__(
        self,
        request: FetchRequest,
        version: int,
        session: Session,
        allowed: Callable[[str], bool],
        listener: str,
        toll: Toll | None = None,
    ) -> None:
        self.toll = toll
        self.session, self.version, self.allowed, self.listener = session, version, allowed, listener
        self.full = request.session_epoch in (FULL, FINAL)
        self.min_bytes, self.max_bytes = request.min_bytes, request.max_bytes
        self.read_committed = request.isolation_level == _READ_COMMITTED
        self.replica = replica_of(request)
        self.replica_epoch = request.replica_state.replica_epoch
        self.rack = request.rack_id
        self.future: asyncio.Future[FetchResponse] | None = None
        self.look_again: Callable[[Ask], None] | None = None
        self.deadline = 0.0
        self.scheduled = False

    def wake(self) -> None:
        """A partition has news: the waiting fetch is looked at once the loop is free, however many bring some."""
        if not self.scheduled:
            assert self.look_again is not None, "only a fetch that waits is woken"
            self.scheduled = True
            asyncio.get_running_loop().call_soon(self.look_again, self)


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
        self, ask: Ask, interest: Wish, budget: int, *, first: bool, fresh: bool, news_only: bool = False
    ) -> Data | None:
        """One partition's part of the answer. `fresh` the first time that this request looks at it.

        With `news_only` None says that there is nothing that a consumer does not know yet. A fetch that waits and
        looks again proves nothing about its follower that it has not proved before.
        """
        try:
            if not ask.session.by_id and not ask.allowed(interest.topic):
                return _failed(interest, TOPIC_AUTHORIZATION_FAILED)
            hosted = self._hosted(interest)
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
        except Corrupt as damage:
            self._partitions.damaged(damage)
            return _failed(interest, CORRUPT_MESSAGE)

    def _hosted(self, interest: Wish) -> Hosted:
        """The partition of an interest, looked up again only when it is not what it was."""
        hosted = interest.hosted
        if hosted is not None and not hosted.gone and not hosted.behind:
            return hosted
        interest.hosted = None
        if interest.session.by_id:
            hosted = self._partitions.by_id(interest.topic_id, interest.partition)
        else:
            hosted = self._partitions.named(interest.topic, interest.partition)
        interest.found(hosted)
        return hosted

    def _read_as_follower(
        self, ask: Ask, interest: Wish, hosted: Hosted, budget: int, first: bool, fresh: bool
    ) -> Data:
        state, log = hosted.state, hosted.log or hosted.require_log()
        outdated = self._partitions.neighbours.is_outdated(ask.replica, ask.replica_epoch)
        follower = decide_follower_read(state, log, interest, ask.replica, ask.replica_epoch, outdated=outdated)
        if isinstance(follower, Diverging):
            return _diverged(ask, interest, log, follower)
        offset, listed = Offset(interest.offset), hosted.settings.leader_replication_throttled_replicas
        throttled = listed and lists(listed, interest.partition, state.me)
        read = None
        if throttled and ask.replica not in state.isr and self.throttle.exceeded(self._clock.monotonic_ms()):
            interest.look = UNREAD if offset < log.written else READ
        else:
            read = self._records(interest, log, log.written, budget, first)
        if fresh:
            self._tell(ask, interest, hosted, follower, offset)
        found = _found(interest, log)  # after the fetch was told: it may have moved the high watermark
        if read is not None:
            found.records = Spans(read.spans)
            if throttled:
                self.throttle.count(read.size, self._clock.monotonic_ms())
        return found

    def _tell(self, ask: Ask, interest: Wish, hosted: Hosted, follower: Follower, offset: Offset) -> None:
        hosted.follower_fetched(
            ask.replica,
            follower,
            offset,
            log_start=Offset(interest.log_start),
            broker_epoch=ask.replica_epoch,
            session=ask.session if ask.session.id else None,
            now=self._clock.now_ms(),
        )

    def _read_as_consumer(
        self, ask: Ask, interest: Wish, hosted: Hosted, budget: int, first: bool, news_only: bool
    ) -> Data | None:
        state, log = hosted.state, hosted.log or hosted.require_log()
        limit = decide_consumer_read(
            state, log, interest,
            version=ask.version, read_committed=ask.read_committed, codec=hosted.settings.compression_type,
        )  # fmt: skip
        if isinstance(limit, Diverging):
            return _diverged(ask, interest, log, limit)
        if self._by_rack and ask.rack and state.followers:
            neighbours = self._partitions.neighbours
            nearest = nearest_replica(state, log, ask.rack, interest.offset, neighbours, self._clock.now_ms())
            if nearest != state.me:
                data = _found(interest, log)
                data.preferred_read_replica = nearest
                interest.look = READ
                return data
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
                for producer, start in log.aborted(interest.offset, read.end)
            ]
        return data

    @staticmethod
    def _records(interest: Wish, log: Log, limit: Offset, budget: int, first: bool) -> Read | None:
        """What there is to read below `limit` and within the budget; the interest remembers if there was more."""
        offset = interest.offset
        if offset >= limit:
            interest.look = READ
            return None
        max_bytes = min(interest.max_bytes, budget)
        read = None
        if first or max_bytes > 0:
            read = log.read(offset, max_bytes=max_bytes, limit=limit, at_least_one=first)
        if read is None or not read.size:
            interest.look = UNREAD
            return None
        interest.look = READ
        return read

    def _refused(self, ask: Ask, interest: Wish, error: ErrorCode) -> Data:
        data = _failed(interest, error)
        if error in _ELSEWHERE and ask.version >= LEADERS_SINCE:
            leader, epoch = self._partitions.leader_of(interest.topic, interest.topic_id, interest.partition)
            data.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        return data


def _diverged(ask: Ask, interest: Wish, log: Log, diverging: Diverging) -> Data:
    if ask.version < DIVERGENCE_SINCE:
        # Its session was told of an epoch in a newer version than it speaks now.
        return _failed(interest, UNSUPPORTED_VERSION)
    data = _found(interest, log)
    data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end)
    return data


def _found(interest: Wish, log: Log) -> Data:
    return Data(
        partition_index=interest.partition,
        error_code=NONE.code,
        high_watermark=log.committed,
        last_stable_offset=log.last_stable,
        log_start_offset=log.log_start,
        records=b"",
    )


def _failed(interest: Wish, error: ErrorCode) -> Data:
    """An error tells no ends, not even of a log that has them: a client asks ListOffsets where it can go on."""
    unread = error in _UNREAD
    return Data(
        partition_index=interest.partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=[] if unread else None,
        records=None if unread else b"",
    )
