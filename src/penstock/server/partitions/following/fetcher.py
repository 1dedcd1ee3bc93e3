"""Fetches from one leader: one fetch after the other, each telling the leader how far we are.

A fetch waits at the leader until there is something to read. What must be told meanwhile (a partition that came to
this leader, one that was synced) does not wait for its end: it goes out over a second link, and the leader answers the
waiting one at once. So at most two fetches are under way, and mostly one.

An answer is taken in, and the next fetch sent, in the very callback that read it: whoever produces waits for that. Only
a link that must be dialled, or an answer that takes long, is the business of a task.

Nothing here is in proportion to the partitions that stand still.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import Refused, StorageFailed, error_of
from penstock.model.ids import PartitionKey, Uuid
from penstock.protocol.replica_fetch import FETCH, VERSION, FetchAnswer, Told, answer_of, read_answer
from penstock.replication.fetching_session import FULL, FetchingSession
from penstock.replication.following import NO_SYNC, Course, Following, Position, course_of, pause_ms, range_mended
from penstock.replication.throttle import lists
from penstock.server.loops.duty import duty
from penstock.server.loops.slices import LoopTime, Slices
from penstock.server.partitions.following.intake import FollowerIntake, Piece
from penstock.server.partitions.following.questions import (
    Limits,
    ask_ends,
    fetch_body,
    fetch_request,
    wait_ms_of,
)
from penstock.server.peers import Peers
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ids import NodeId
    from penstock.model.ports import Clock
    from penstock.replication.throttle import Throttle
    from penstock.server.partitions.following.intake import Followed
    from penstock.server.partitions.following.questions import Asked
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.peers import Address
    from penstock.transport.dial import OnReply, Reader

log = logging.getLogger("penstock.follower")

PARTITIONS_AT_ONCE: Final = 1_000
"""What one fetch names at most; the rest goes into the next one."""
BYTES_IN_A_CALLBACK: Final = 512 << 10
PARTITIONS_IN_A_CALLBACK: Final = 64
"""An answer with more is taken in by a task, in slices."""
OVERTAKING_S: Final = 0.005
"""How long after a fetch the next may go out over the other link; sooner it could arrive first."""
USELESS_IN_A_ROW_MAX: Final = 5
"""After so many answers of which nothing was of use the next fetch waits a while. A few come when two overtake."""
EARLY_S: Final = 0.001
"""A timer may ring so much before its time; asking the clock again and again until then would hold the loop."""
THROTTLED_S: Final = 0.1
SYNCING: Final = "it is being synced"
_LANES: Final = 2


class Lines(Peers, Protocol):
    """Links to other nodes that can be given up, and asked without waiting."""

    def post(
        self,
        to: Address,
        key: int,
        version: int,
        body: bytes | bytearray,
        *,
        purpose: str,
        timeout_ms: float,
        read: Reader,
        on_reply: OnReply,
    ) -> bool:
        """Sends over a link that stands; False when none does."""

    def hang_up(self, to: Address, purpose: str) -> None: ...


class _Lane:
    """One link's worth of fetches. `question` is the one under way, `over` ends what callbacks can do alone.

    That is a pair (question, answer) that a task must see to; no answer when the question is still to be asked.
    """

    __slots__ = ("address", "fetcher", "over", "purpose", "question")

    def __init__(self, fetcher: FollowerFetcher, purpose: str) -> None:
        self.fetcher, self.purpose = fetcher, purpose
        self.address: Address | None = None
        self.question: Asked | None = None
        self.over: asyncio.Future[tuple[Asked, FetchAnswer | None] | None] | None = None

    def heard(self, answer: FetchAnswer | None, failure: LinkError | None) -> None:
        self.fetcher.heard(self, answer, failure)


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
        self._settings, self._throttle, self._limits = settings, throttle, Limits.of(settings)
        self._broker_epoch, self._address_of, self._storage_failed = broker_epoch, address_of, storage_failed
        self._session: FetchingSession[Hosted] = FetchingSession()
        self._intake = FollowerIntake(clock, self._count)
        self._loop = asyncio.get_running_loop()
        self._lanes: list[asyncio.Task[None]] = []
        self._idle: deque[asyncio.Future[None]] = deque()
        self._in_flight: dict[str, Address] = {}
        self._opening = False  # a fetch that begins a session is under way; nothing can be said before it is answered
        self._taking_in = 0  # long answers that tasks take in
        self._sent_at = self._not_before = 0.0
        self._failures = self._useless_in_a_row = 0
        self._closed = False
        self.bytes_in = self.fetches = 0

    def __len__(self) -> int:
        return len(self._session)

    def partitions(self) -> list[Followed]:
        return self._session.partitions()

    # -- told by the driver

    def settings_changed(self) -> None:
        self._limits = Limits.of(self._settings)

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

    def start_moved(self, key: PartitionKey) -> None:
        """Our log begins elsewhere. The leader hears of it with the next fetch, which comes soon enough."""
        following = self._session.get(key)
        if following is not None:
            self._session.touch(following)

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
            lane = _Lane(self, purpose)
            self._lanes.append(duty(self._run(lane), name=f"fetch from {self.leader} ({purpose})"))

    def _wake_at(self, when: float) -> None:
        self._loop.call_at(when, self._wake)

    async def _run(self, lane: _Lane) -> None:
        while not self._closed:
            question = lane.question = self._next_question()
            if question is None:
                waiting = self._loop.create_future()
                self._idle.append(waiting)
                await waiting
                continue
            try:
                await self._fetch(lane, question)
            except LinkError as error:
                self._lost(lane.question, str(error))
            except Exception:
                # Replication that ends without a word is worse than one that tries again.
                log.exception("a fetch from broker %s failed; trying again", self.leader)
                self._lost(lane.question, "an error of our own")

    def _next_question(self) -> Asked | None:
        """The next fetch; None when there is nothing to say, or it cannot be said yet."""
        session, now = self._session, self._loop.time()
        if self._opening or not session.asks_anything:
            return None
        if (self._taking_in or (self._in_flight and session.established)) and not session.has_news:
            return None
        earliest = self._not_before
        if self._in_flight:
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

    async def _fetch(self, lane: _Lane, question: Asked) -> None:
        """Asks, and goes on for as long as callbacks can do it."""
        address = self._address_of(self.leader)
        if address is None:
            self._ended(lane, question)
            raise LinkError(f"broker {self.leader}", 0, "its address is not known")
        lane.address = address
        answer: FetchAnswer | None = None
        if self._post(lane, question):
            lane.over = self._loop.create_future()
            rest = await lane.over
            if rest is None:
                return
            question, answer = rest
        if answer is None:
            answer = await self._ask(lane, question)
            if not self._accepted(question, answer):
                return
        if self._session.has_news:
            self._wake()
        self._taking_in += 1
        try:
            lost = await self._take_in(question, answer)
        finally:
            self._taking_in -= 1
        if lost:
            await self._find_ranges(lost, address, lane.purpose)

    def _post(self, lane: _Lane, question: Asked) -> bool:
        """Asks over a link that stands, if one does."""
        address, body = self._begin(lane, question)
        return self._peers.post(
            address, FETCH, VERSION, body,
            purpose=lane.purpose, timeout_ms=self._limits.timeout_ms, read=read_answer, on_reply=lane.heard,
        )  # fmt: skip

    async def _ask(self, lane: _Lane, question: Asked) -> FetchAnswer:
        """Asks over a link that may have to be dialled first, and may lead to an older broker."""
        address, body = self._begin(lane, question)
        request, timeout_ms = fetch_request(question, body), self._limits.timeout_ms
        try:
            reply = await self._peers.ask(address, request, VERSION, purpose=lane.purpose, timeout_ms=timeout_ms)
        except LinkError:
            self._peers.hang_up(address, lane.purpose)
            raise
        finally:
            self._ended(lane, question)
        return answer_of(reply)

    def _begin(self, lane: _Lane, question: Asked) -> tuple[Address, bytearray]:
        """A fetch is under way from here on: where it goes, and what it says."""
        address, limits = lane.address, self._limits
        assert address is not None, "a lane knows whom it asks"
        lane.question = question
        self._in_flight[lane.purpose] = address
        wait_ms = wait_ms_of(question, limits, one_at_a_time=self._session.refused_by_leader)
        return address, fetch_body(question, limits, wait_ms, self._me, self._broker_epoch())

    def _ended(self, lane: _Lane, question: Asked) -> None:
        """A fetch is not under way any more, whatever came of it."""
        self._in_flight.pop(lane.purpose, None)
        if question.session_epoch == FULL:
            self._opening = False

    def _accepted(self, question: Asked, answer: FetchAnswer) -> bool:
        """Whether an answer has anything to be read."""
        self.fetches += 1
        if not self._session.answered(question, answer.error_code, answer.session_id):
            self._pause(f"its fetch session is over: {error_of(answer.error_code).name}", logging.INFO)
            return False
        if self._failures:
            log.info("fetching from broker %s again", self.leader)
            self._failures = 0
        return True

    def heard(self, lane: _Lane, answer: FetchAnswer | None, failure: LinkError | None) -> None:
        """An answer came, or none will. Takes it in and asks on; leaves to the lane's task what would take long."""
        over, question = lane.over, lane.question
        assert over is not None, "only what was asked is answered"
        assert question is not None, "only what was asked is answered"
        if over.done():
            return  # nobody to follow any more
        try:
            self._ended(lane, question)
            if answer is None:
                assert failure is not None, "there is an answer or a reason"
                assert lane.address is not None, "a lane knows whom it asks"
                self._peers.hang_up(lane.address, lane.purpose)
                over.set_exception(failure)
            elif not self._accepted(question, answer):
                over.set_result(None)
            elif answer.records_bytes > BYTES_IN_A_CALLBACK or len(answer.told) > PARTITIONS_IN_A_CALLBACK:
                over.set_result((question, answer))
            else:
                self._go_on(lane, over, question, answer)
        except Exception as broken:
            if not over.done():
                over.set_exception(broken)

    def _go_on(
        self,
        lane: _Lane,
        over: asyncio.Future[tuple[Asked, FetchAnswer | None] | None],
        question: Asked,
        answer: FetchAnswer,
    ) -> None:
        lost: list[Told] = []
        for _ in self._steps(question, answer, lambda _following, told: lost.append(told)):
            pass
        if over.done():
            return  # a disk failed, and with it went all that was followed
        if lost:
            over.set_result((question, answer._replace(told=lost)))
            return
        next_question = self._next_question()
        if next_question is None:
            over.set_result(None)
        elif not self._post(lane, next_question):
            over.set_result((next_question, None))

    def _lost(self, question: Asked | None, why: str) -> None:
        """No answer: the next fetch says everything again."""
        assert question is not None, "something was asked"
        self._session.failed(question)
        self._pause(why)

    def _pause(self, why: str, level: int = logging.WARNING) -> None:
        """The next try comes after a pause, the longer the more have failed. Only the first failure is news."""
        pause = pause_ms(self._failures, self._settings.number("replica.fetch.backoff.ms"))
        log.log(logging.DEBUG if self._failures else level, "fetching from broker %s failed: %s", self.leader, why)
        self._failures += 1
        self._not_before = self._loop.time() + pause / 1_000

    # -- asking

    def _position(self, following: Followed) -> Position | None:
        """What to tell of a partition; None when it has to wait, which is seen to."""
        hosted = following.hosted
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

    async def _take_in(self, question: Asked, answer: FetchAnswer) -> list[Followed]:
        """Everything of an answer, in slices. Returns the partitions whose end lies outside of the leader's log."""
        lost: list[Followed] = []

        def out_of_range(following: Followed, _told: Told) -> None:
            self._session.hold(following, "its range is being asked for")
            lost.append(following)

        pace = Slices(LoopTime(self._loop))
        for arriving in self._steps(question, answer, out_of_range):
            if pace.over:
                if arriving is not None:
                    arriving.arriving = True
                await pace.breathe()
                if arriving is not None:
                    arriving.arriving = False
        return lost

    def _steps(
        self, question: Asked, answer: FetchAnswer, out_of_range: Callable[[Followed, Told], None]
    ) -> Iterator[Followed | None]:
        """Takes in an answer, and stops wherever others may have the loop for a while.

        It stops between partitions, and at a partition of whose batches only some are in the log yet.
        """
        useful = False
        for told in answer.told:
            following = self._answered(question, told)
            if following is None:
                continue
            useful = True
            if told.error_code and course_of(told.error_code) is Course.FIND_RANGE:
                out_of_range(following, told)
                continue
            try:
                piece = self._take(following, told)
                while piece is not None:
                    yield following
                    if piece.stale:
                        self._taken(following)
                        break
                    piece = self._take_more(piece)
            except Exception as failure:
                self._not_taken(following, failure)
            yield None
        self._weigh(answer, useful)

    def _answered(self, question: Asked, told: Told) -> Followed | None:
        """The partition that an answer speaks of, if it speaks of where that is now."""
        key = PartitionKey(Uuid(told.topic_id), told.partition)
        following = self._session.get(key)
        if following is not None:
            if following.hosted.log is None or following.arriving:
                return None
            if following.answers(question.number, _position_of(following)):
                return following
        self._session.dropped(question, key)
        return None

    def _weigh(self, answer: FetchAnswer, useful: bool) -> None:
        """An answer that is of no use may come again at once, and again: then the fetches become rare."""
        if useful or not answer.told:
            self._useless_in_a_row = 0
            return
        self._useless_in_a_row += 1
        surplus = self._useless_in_a_row - USELESS_IN_A_ROW_MAX
        if surplus > 0:
            pause = pause_ms(surplus, self._settings.number("replica.fetch.backoff.ms"))
            self._not_before = self._loop.time() + pause / 1_000

    def _take(self, following: Followed, told: Told) -> Piece | None:
        """Takes in what is told of one partition; what it returns has more to take."""
        if told.error_code:
            later = course_of(told.error_code) is Course.RETRY_LATER
            after_ms = self._settings.number("replica.fetch.backoff.ms") if later else None
            self._retry(following, error_of(told.error_code).name, after_ms)
            return None
        if told.diverging is not None:
            self._part(following, *told.diverging)
            return None
        if not told.records:
            following.retries = 0
            if self._intake.follow_ends(following, told):
                self._session.touch(following)
            return None
        return self._take_more(self._intake.open(following, told))

    def _take_more(self, piece: Piece) -> Piece | None:
        self._intake.append(piece)
        if piece.more:
            return piece
        self._taken(piece.following)
        return None

    def _taken(self, following: Followed) -> None:
        following.retries = 0
        self._session.touch(following)

    def _not_taken(self, following: Followed, failure: Exception) -> None:
        """An answer that we cannot cope with must not end the replication of everything else."""
        if isinstance(failure, Refused):
            # A batch that cannot be copied stays so until somebody mends the leader's log.
            self._retry(following, f"{failure.error.name}: {failure.why}", level=logging.WARNING)
        elif isinstance(failure, StorageFailed):
            self._session.hold(following, "its disk failed")
            self._storage_failed(failure)
        else:
            log.error("%s: what broker %s sent cannot be taken in", following.name, self.leader, exc_info=failure)
            self._retry(following, "an error of our own")

    def _part(self, following: Followed, epoch: int, end: int) -> None:
        before = _position_of(following)
        self._intake.diverged(following, epoch, end)
        if _position_of(following) == before:
            self._retry(following, f"the leader's epoch {epoch} ends at {end}, as ours does")
        else:
            self._hold_for_sync(following)  # a power cut may not leave new batches behind old ones

    async def _find_ranges(self, lost: list[Followed], address: Address, purpose: str) -> None:
        holds = [following.hold for following in lost]
        timeout_ms = self._limits.timeout_ms
        try:
            ends = await ask_ends(self._peers, address, self._me, lost, purpose=purpose, timeout_ms=timeout_ms)
        except LinkError as error:
            ends = {}
            log.warning("asking broker %s for the ends of its logs failed: %s", self.leader, error)
        for following, held in zip(lost, holds, strict=True):
            if following.hold != held or not following.held or following.hosted.log is None:
                continue  # left, or in another epoch, or offline meanwhile
            found = ends.get(following.key)
            own = following.hosted.log
            how = range_mended(own.log_start, own.written, *found) if found is not None else None
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

    def _hold_for_sync(self, following: Followed) -> None:
        """Until it is synced; and after a while it is looked whether it is, should nobody have told."""
        hosted = following.hosted
        end = hosted.require_log().written
        self._hold_for(following, SYNCING, self._settings.number("replica.fetch.backoff.ms"))
        if following.awaited_sync != end:
            following.awaited_sync = end
            hosted.when_flushed(end, lambda: self._synced(following))
        hosted.want_sync()

    def _synced(self, following: Followed) -> None:
        following.awaited_sync = NO_SYNC
        if following.held == SYNCING:
            self._due(following, following.hold)

    def _retry(
        self, following: Followed, why: str, after_ms: float | None = None, *, level: int = logging.INFO
    ) -> None:
        """Only the first of several failures is news."""
        if after_ms is None:
            after_ms = pause_ms(following.retries, self._settings.number("replica.fetch.backoff.ms"))
        level = logging.DEBUG if following.retries else level
        log.log(level, "%s is not fetched from broker %s for now: %s", following.name, self.leader, why)
        following.retries += 1
        self._hold_for(following, why, after_ms)

    def _hold_for(self, following: Followed, why: str, after_ms: float) -> int:
        held = self._session.hold(following, why)
        self._loop.call_later(after_ms / 1_000, self._due, following, held)
        return held

    def _due(self, following: Followed, held: int) -> None:
        if following.hold == held and following.held and not self._closed:
            self._session.resume(following)
            self._wake()

    # -- throttling

    def _throttled(self, following: Followed) -> bool:
        listed = following.hosted.settings.follower_replication_throttled_replicas
        return bool(listed) and lists(listed, following.key.partition, self._me)

    def _over_rate(self, following: Followed, end: int) -> bool:
        if not self._throttled(following) or 0 <= following.leader_high_watermark <= end:
            return False
        return self._throttle.exceeded(self._loop.time() * 1_000)

    def _count(self, following: Followed, size: int) -> None:
        self.bytes_in += size
        if self._throttled(following):
            self._throttle.count(size, self._loop.time() * 1_000)


def _position_of(following: Followed) -> Position:
    target = following.hosted.log
    assert target is not None, "a partition whose log is offline is held"
    return Position(target.written, following.epoch, target.epochs.latest, target.log_start)
