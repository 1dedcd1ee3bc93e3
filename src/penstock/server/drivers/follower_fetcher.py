"""Fetches from one leader: one fetch after the other, each telling the leader how far we are.

A fetch waits at the leader until there is something to read. What must be told meanwhile (a partition that came to
this leader, one that was synced) does not wait for its end: it goes out over a second link, and the leader answers the
waiting one at once. So at most two fetches are under way, and mostly one.

Nothing here is in proportion to the partitions that stand still.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import Refused, StorageFailed, error_of
from penstock.model.ids import PartitionKey
from penstock.replication.fetching_session import FULL, FetchingSession, Question
from penstock.replication.following import NO_SYNC, Course, Following, Position, course_of, pause_ms, range_mended
from penstock.replication.throttle import lists
from penstock.server.drivers.follower_intake import FollowerIntake
from penstock.server.drivers.follower_questions import ask_ends, fetch_request
from penstock.server.peers import Peers
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ids import NodeId
    from penstock.model.ports import Clock
    from penstock.protocol.messages.fetch import FetchResponse
    from penstock.replication.throttle import Throttle
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.peers import Address

log = logging.getLogger("penstock.follower")

FETCH_VERSION: Final = 17
PARTITIONS_AT_ONCE: Final = 1_000
"""What one fetch names at most; the rest goes into the next one."""
SLICE_S: Final = 0.005
OVERTAKING_S: Final = 0.005
"""How long after a fetch the next may go out over the other link; sooner it could arrive first."""
EARLY_S: Final = 0.001
"""A timer may ring so much before its time; asking the clock again and again until then would hold the loop."""
THROTTLED_S: Final = 0.1
SYNCING: Final = "it is being synced"
_LANES: Final = 2


class Lines(Peers, Protocol):
    """Links to other nodes that can be given up."""

    def hang_up(self, to: Address, purpose: str) -> None: ...


class _Pace:
    """Slices of a long piece of work."""

    __slots__ = ("_loop", "_until")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._until = loop, loop.time() + SLICE_S

    @property
    def over(self) -> bool:
        return self._loop.time() >= self._until

    async def breathe(self) -> None:
        """Lets others have the loop."""
        await asyncio.sleep(0)
        self._until = self._loop.time() + SLICE_S


class FollowerFetcher:
    """All partitions of one (leader, index). Runs while it has any."""

    def __init__(
        self,
        me: NodeId,
        leader: NodeId,
        index: int,
        peers: Lines,
        clock: Clock,
        settings: BrokerSettings,
        throttle: Throttle,
        *,
        broker_epoch: Callable[[], int],
        address_of: Callable[[NodeId], Address | None],
        storage_failed: Callable[[StorageFailed], None],
    ) -> None:
        self._me, self.leader, self._index, self._peers = me, leader, index, peers
        self._settings, self._throttle = settings, throttle
        self._broker_epoch, self._address_of, self._storage_failed = broker_epoch, address_of, storage_failed
        self._session = FetchingSession()
        self._intake = FollowerIntake(clock, self._count)
        self._loop = asyncio.get_running_loop()
        self._lanes: list[asyncio.Task[None]] = []
        self._idle: deque[asyncio.Future[None]] = deque()
        self._in_flight: dict[str, Address] = {}
        self._opening = False  # a fetch that begins a session is under way; nothing can be said before it is answered
        self._sent_at = self._not_before = 0.0
        self._failures = 0
        self._closed = False
        self.bytes_in = self.fetches = 0

    def __len__(self) -> int:
        return len(self._session)

    def partitions(self) -> list[Following]:
        return self._session.partitions()

    # -- told by the driver

    def follow(self, hosted: Hosted) -> None:
        """Fetches a partition from now on, or goes on with it in a new leader epoch."""
        known = self._session.get(hosted.key)
        if known is None:
            self._session.add(Following(hosted.key, hosted.name, hosted.state.epoch, hosted))
        else:
            known.epoch, known.hosted, known.retries = hosted.state.epoch, hosted, 0
            if known.held != SYNCING:  # that ends by itself, and is needed in any epoch
                self._session.resume(known)
            self._session.touch(known)
        self._wake()

    def leave(self, key: PartitionKey) -> None:
        """Fetches it no more; an answer that is on its way is dropped."""
        self._session.remove(key)
        if not len(self._session):
            self._end()

    async def close(self) -> None:
        self._end()
        await asyncio.gather(*self._lanes, return_exceptions=True)

    def _end(self) -> None:
        """Nobody to follow. A fetch that waits at the leader is given up with its link, or the next would queue."""
        self._closed = True
        for lane in self._lanes:
            lane.cancel()
        for purpose, address in self._in_flight.items():
            self._peers.hang_up(address, purpose)

    # -- lanes

    def _wake(self) -> None:
        """There may be something to ask."""
        while self._idle:
            waiting = self._idle.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        if len(self._lanes) < _LANES and not self._closed:
            number = len(self._lanes)
            purpose = f"replica-fetch-{self._index}" + ("-again" if number else "")
            self._lanes.append(self._loop.create_task(self._run(purpose), name=f"fetch from {self.leader} ({purpose})"))

    def _wake_at(self, when: float) -> None:
        self._loop.call_at(when, self._wake)

    async def _run(self, purpose: str) -> None:
        while not self._closed:
            question = self._next_question()
            if question is None:
                waiting = self._loop.create_future()
                self._idle.append(waiting)
                await waiting
                continue
            try:
                await self._fetch(question, purpose)
            except LinkError as error:
                self._lost(question, str(error))
            except Exception:
                # Replication that ends without a word is worse than one that tries again.
                log.exception("a fetch from broker %s failed; trying again", self.leader)
                self._lost(question, "an error of our own")

    def _next_question(self) -> Question | None:
        """The next fetch; None when there is nothing to say, or it cannot be said yet."""
        session, now = self._session, self._loop.time()
        if self._opening or not session.asks_anything:
            return None
        earliest = self._not_before
        if self._in_flight:
            if session.established and not session.has_news:
                return None
            earliest = max(earliest, self._sent_at + OVERTAKING_S)
        if now < earliest - EARLY_S:
            self._wake_at(earliest)
            return None
        question = session.question(self._position, PARTITIONS_AT_ONCE)
        if question.session_epoch == FULL and not question.wanted:
            return None
        self._opening = question.session_epoch == FULL
        self._sent_at = now
        return question

    async def _fetch(self, question: Question, purpose: str) -> None:
        try:
            address = self._address_of(self.leader)
            if address is None:
                raise LinkError(f"broker {self.leader}", 0, "its address is not known")
            self._in_flight[purpose] = address
            request = fetch_request(
                question, self._settings, self._me, self._broker_epoch(), one_at_a_time=self._session.refused_by_leader
            )
            timeout_ms = self._settings.number("replica.socket.timeout.ms")
            reply = await self._peers.ask(address, request, FETCH_VERSION, purpose=purpose, timeout_ms=timeout_ms)
        except LinkError:
            if purpose in self._in_flight:
                self._peers.hang_up(self._in_flight[purpose], purpose)
            raise
        finally:
            self._in_flight.pop(purpose, None)
            if question.session_epoch == FULL:
                self._opening = False
        self.fetches += 1
        if not self._session.answered(question, reply.error_code, reply.session_id):
            self._pause(f"its fetch session is over: {error_of(reply.error_code).name}", logging.INFO)
            return
        if self._failures:
            log.info("fetching from broker %s again", self.leader)
            self._failures = 0
        if self._session.has_news:
            self._wake()
        lost = await self._take_in(question, reply)
        if lost:
            await self._find_ranges(lost, address, purpose)

    def _lost(self, question: Question, why: str) -> None:
        """No answer: the next fetch says everything again."""
        self._session.failed(question)
        self._pause(why)

    def _pause(self, why: str, level: int = logging.WARNING) -> None:
        """The next try comes after a pause, the longer the more have failed. Only the first failure is news."""
        pause = pause_ms(self._failures, self._settings.number("replica.fetch.backoff.ms"))
        log.log(logging.DEBUG if self._failures else level, "fetching from broker %s failed: %s", self.leader, why)
        self._failures += 1
        self._not_before = self._loop.time() + pause / 1_000

    # -- asking

    def _position(self, following: Following) -> Position | None:
        """What to tell of a partition; None when it has to wait, which is seen to."""
        hosted: Hosted = following.hosted
        target = hosted.log
        if target is None:
            self._session.hold(following, "its log directory is offline")
            return None
        if hosted.syncs_before_ack and hosted.counted_end() < target.written:
            # To ask from an offset says that everything before it is here for good.
            self._hold_for_sync(following)
            return None
        if self._over_rate(following, target.written):
            self._hold_for(following, "it is throttled", THROTTLED_S * 1_000)
            return None
        return _position_of(following)

    # -- taking in

    async def _take_in(self, question: Question, reply: FetchResponse) -> list[Following]:
        """Everything of an answer, in slices. Returns the partitions whose end lies outside of the leader's log."""
        lost: list[Following] = []
        pace = _Pace(self._loop)
        for topic in reply.responses:
            for data in topic.partitions:
                following = self._session.get(PartitionKey(topic.topic_id, data.partition_index))
                if following is None or following.hosted.log is None:
                    continue
                if not following.answers(question.number, _position_of(following)):
                    continue
                if data.error_code:
                    if self._refused(following, data):
                        lost.append(following)
                    continue
                try:
                    await self._take(following, data, pace)
                except Refused as refusal:
                    self._retry(following, f"{refusal.error.name}: {refusal.why}")
                except StorageFailed as failure:
                    self._session.hold(following, "its disk failed")
                    self._storage_failed(failure)
                except Exception:
                    # An answer that we cannot cope with must not end the replication of everything else.
                    log.exception("%s: what broker %s sent cannot be taken in", following.name, self.leader)
                    self._retry(following, "an error of our own")
                if pace.over:
                    await pace.breathe()
        return lost

    async def _take(self, following: Following, data: FetchResponse.PartitionData, pace: _Pace) -> None:
        if data.diverging_epoch.end_offset >= 0:
            self._part(following, data.diverging_epoch)
            return
        if not data.records:
            following.retries = 0
            if self._intake.follow_ends(following, data):
                self._session.touch(following)
            return
        piece = self._intake.open(following, data)
        self._intake.append(piece)
        while piece.more:
            if pace.over:
                await pace.breathe()
                if piece.stale:
                    break
            self._intake.append(piece)
        following.retries = 0
        self._session.touch(following)

    def _part(self, following: Following, diverging: FetchResponse.EpochEndOffset) -> None:
        before = _position_of(following)
        self._intake.diverged(following, diverging.epoch, diverging.end_offset)
        if _position_of(following) == before:
            self._retry(following, f"the leader's epoch {diverging.epoch} ends at {diverging.end_offset}, as ours does")
        else:
            self._hold_for_sync(following)  # a power cut may not leave new batches behind old ones

    def _refused(self, following: Following, data: FetchResponse.PartitionData) -> bool:
        """An error for one partition. True when the leader must be asked where its log begins and ends."""
        error = error_of(data.error_code)
        course = course_of(data.error_code)
        if course is Course.FIND_RANGE:
            self._session.hold(following, "its range is being asked for")
            return True
        later = course is Course.RETRY_LATER
        self._retry(following, error.name, self._settings.number("replica.fetch.backoff.ms") if later else None)
        return False

    async def _find_ranges(self, lost: list[Following], address: Address, purpose: str) -> None:
        holds = [following.hold for following in lost]
        timeout_ms = self._settings.number("replica.socket.timeout.ms")
        try:
            ends = await ask_ends(self._peers, address, self._me, lost, purpose=purpose, timeout_ms=timeout_ms)
        except LinkError as error:
            ends = {}
            log.warning("asking broker %s for the ends of its logs failed: %s", self.leader, error)
        for following, held in zip(lost, holds, strict=True):
            if following.hold != held or not following.held or following.hosted.log is None:
                continue  # left, or in another epoch, or offline meanwhile
            found = ends.get(following.key)
            how = range_mended(following.hosted.log.written, *found) if found is not None else None
            if how is None:
                self._retry(following, "its end is outside of the leader's log, and where that ends is not known yet")
                continue
            try:
                self._intake.mend(following, how)
            except Refused as refusal:
                self._retry(following, f"{refusal.error.name}: {refusal.why}")
            except StorageFailed as failure:
                self._storage_failed(failure)
            else:
                self._hold_for_sync(following)

    # -- waiting

    def _hold_for_sync(self, following: Following) -> None:
        """Until it is synced; and after a while it is looked whether it is, should nobody have told."""
        hosted: Hosted = following.hosted
        end = hosted.require_log().written
        self._hold_for(following, SYNCING, self._settings.number("replica.fetch.backoff.ms"))
        if following.awaited_sync != end:
            following.awaited_sync = end
            hosted.when_flushed(end, lambda: self._synced(following))
        hosted.want_sync()

    def _synced(self, following: Following) -> None:
        following.awaited_sync = NO_SYNC
        if following.held == SYNCING:
            self._due(following, following.hold)

    def _retry(self, following: Following, why: str, after_ms: float | None = None) -> None:
        if after_ms is None:
            after_ms = pause_ms(following.retries, self._settings.number("replica.fetch.backoff.ms"))
        level = logging.INFO if not following.retries else logging.DEBUG
        log.log(level, "%s is not fetched from broker %s for now: %s", following.name, self.leader, why)
        following.retries += 1
        self._hold_for(following, why, after_ms)

    def _hold_for(self, following: Following, why: str, after_ms: float) -> int:
        held = self._session.hold(following, why)
        self._loop.call_later(after_ms / 1_000, self._due, following, held)
        return held

    def _due(self, following: Following, held: int) -> None:
        if following.hold == held and following.held and not self._closed:
            self._session.resume(following)
            self._wake()

    # -- throttling

    def _throttled(self, following: Following) -> bool:
        listed = following.hosted.settings.follower_replication_throttled_replicas
        return lists(listed, following.key.partition, self._me)

    def _over_rate(self, following: Following, end: int) -> bool:
        if not self._throttled(following) or 0 <= following.leader_high_watermark <= end:
            return False
        return self._throttle.exceeded(self._loop.time() * 1_000)

    def _count(self, following: Following, size: int) -> None:
        self.bytes_in += size
        if self._throttled(following):
            self._throttle.count(size, self._loop.time() * 1_000)


def _position_of(following: Following) -> Position:
    target = following.hosted.log
    return Position(target.written, following.epoch, target.epochs.latest, target.log_start)
