"""Answers fetches: sessions, what is readable now, and the fetches that wait for more.

A waiting fetch is one entry in a heap and one future. It is looked at again only when a partition it is interested
in moves, so ten thousand idle partitions cost nothing while it waits.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from penstock.model.errors import Refused
from penstock.model.ids import NodeId
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.wire import Spans
from penstock.replication.fetch_session import FINAL, FULL, UNKNOWN, UNREAD, FetchSession, FetchSessions, News
from penstock.server.partitions.fetching.reading import LEADERS_SINCE, Ask, Data, Reading, replica_of

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.server.doors import Toll
    from penstock.server.partitions.fetching.reading import Session, Wish
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.partition_driver import PartitionDriver

EARLY_S = 0.001
_GONE_MAX = 1_000
_BY_ID_SINCE = 13
_NO_NEWS, _URGENT = News.NONE, News.URGENT
_PARTITION_BYTES = 48
"""About what a partition takes in a reply besides its records; what really leaves is known when it is encoded."""


class FetchDriver:
    """The door behind the Fetch handler."""

    def __init__(
        self,
        partitions: PartitionDriver,
        clock: Clock,
        sessions: FetchSessions[Hosted, Ask],
        *,
        max_bytes: int,
        by_rack: bool = False,
    ) -> None:
        """`by_rack` sends consumers to in-sync replicas in their racks."""
        self._partitions, self._clock, self._sessions, self.max_bytes = partitions, clock, sessions, max_bytes
        self._reading = Reading(partitions, clock, by_rack=by_rack)
        self._heap: list[tuple[float, int, Ask]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self.waiting = self.bytes_to_followers = 0
        self.refused_elsewhere = 0  # asked of topics that are not here

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    def fetch(
        self,
        request: FetchRequest,
        version: int,
        allowed: Callable[[str], bool],
        listener: str = "",
        toll: Toll | None = None,
        rights: Hashable = None,
    ) -> FetchResponse | asyncio.Future[FetchResponse]:
        """`listener` is the one the client came by: it is told where to find leaders on it.

        Whoever resumes a session with other `rights` than the last one is asked about all of its partitions.
        """
        try:
            session = self._session_of(request, version, rights)
        except Refused as refusal:
            return FetchResponse(error_code=refusal.error.code)
        ask = Ask(request, version, session, allowed, listener, toll)
        ask.max_bytes = min(ask.max_bytes, self.max_bytes)
        if toll is not None:
            ask.max_bytes = min(ask.max_bytes, toll.bytes_max)
            if ask.min_bytes >= toll.bytes_max:
                ask.min_bytes = 1  # whole batches seldom fill it to the byte, and more will never fit
        reply, size, settled = self._collect(ask)
        if settled or size >= ask.min_bytes or request.max_wait_ms <= 0 or session.knows_nothing:
            return self._finish(ask, reply)
        return self._park(ask, request.max_wait_ms)

    def close(self) -> None:
        """Answers every waiting fetch with what there is."""
        if self._timer is not None:
            self._timer.cancel()
        for _, _, ask in self._heap:
            self._complete(ask)
        self._heap.clear()

    # -- sessions

    def _session_of(self, request: FetchRequest, version: int, rights: Hashable) -> Session:
        now, by_id = self._clock.now_ms(), version >= _BY_ID_SINCE
        # Whoever names all that it wants forgets nothing.
        incremental = request.session_epoch not in (FULL, FINAL)
        forgotten = request.forgotten_topics_data if incremental else ()
        if incremental:
            session = self._sessions.resume(request.session_id, request.session_epoch, by_id=by_id, now=now)
            if session.parked is not None:
                self._complete(session.parked)  # the fetcher gave up on it and asks anew
        else:
            if request.session_id:
                self._drop(self._sessions.close(request.session_id))
            privileged = replica_of(request) >= 0
            if request.session_epoch == FULL:
                for abandoned in self._sessions.abandoned(now):
                    self._drop(abandoned)
                session, evicted = self._sessions.open(by_id=by_id, privileged=privileged, now=now)
                self._drop(evicted)
            else:
                session = FetchSession(0, by_id=by_id, privileged=privileged, now=now)
        session.read_with(rights)
        added, gone = session.update(request.topics, forgotten)
        if session.id:
            for interest in added:
                interest.watch()
        for interest in gone:
            interest.unwatch()
        if session.id and not session.interests and request.session_epoch != FULL:
            # Everything was forgotten: the session ends, and the fetcher is told so by the id 0.
            self._sessions.close(session.id)
            session.id = 0
        return session

    def _drop(self, session: Session | None) -> None:
        if session is None:
            return
        if session.parked is not None:
            self._complete(session.parked)
        for interest in session.interests.values():
            interest.unwatch()

    # -- waiting

    def _park(self, ask: Ask, max_wait_ms: int) -> asyncio.Future[FetchResponse]:
        loop = asyncio.get_running_loop()
        ask.future, ask.look_again = loop.create_future(), self._look_again
        ask.deadline = loop.time() + max_wait_ms / 1_000
        ask.session.parked = ask
        # Without a session the interests live as long as this one wait; with one, the clean ones are watched already.
        for interest in ask.session.dirty if ask.session.id else ask.session.interests.values():
            interest.watch()
        ask.future.add_done_callback(lambda future: self._abandoned(ask) if future.cancelled() else None)
        self.waiting += 1
        heapq.heappush(self._heap, (ask.deadline, next(self._order), ask))
        if self._heap[0][2] is ask:
            self._arm(loop)
        return ask.future

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._heap[0][0], self._expire) if self._heap else None

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        heap = self._heap
        due = []
        # A timer may ring a hair before its time; looking again and again until then would hold the loop.
        while heap and (heap[0][2].future is None or heap[0][0] <= now + EARLY_S):
            due.append(heapq.heappop(heap)[2])
        for ask in due:
            self._complete(ask)
        self._timer = None
        self._arm(loop)

    def _look_again(self, ask: Ask) -> None:
        ask.scheduled = False
        if ask.future is None:
            return
        try:
            reply, size, settled = self._collect(ask)
            if settled or size >= ask.min_bytes:
                self._answer(ask, self._finish(ask, reply))
            else:
                for interest in ask.session.dirty:
                    interest.watch()
        except Exception as broken:
            self._fail(ask, broken)

    def _complete(self, ask: Ask) -> None:
        if ask.future is None:
            return
        try:
            reply, _, _ = self._collect(ask)
            self._answer(ask, self._finish(ask, reply))
        except Exception as broken:
            self._fail(ask, broken)

    def _fail(self, ask: Ask, broken: Exception) -> None:
        """What is wrong with one fetch costs that fetch: the others that wait are still to be answered."""
        future = ask.future
        if future is not None:
            self._unpark(ask)
            if not future.done():
                future.set_exception(broken)

    def _answer(self, ask: Ask, reply: FetchResponse) -> None:
        future = ask.future
        self._unpark(ask)
        if future is not None and not future.done():
            future.set_result(reply)

    def _abandoned(self, ask: Ask) -> None:
        """The asker is gone, and its wait with it."""
        if ask.future is not None:
            self._unpark(ask)

    def _unpark(self, ask: Ask) -> None:
        ask.future = ask.session.parked = None
        self.waiting -= 1
        if not ask.session.id:
            for interest in ask.session.interests.values():
                interest.unwatch()
        # A heap entry whose future is gone is dropped when its time comes, or when most entries are such: a deadline
        # is as far away as the asker likes.
        if len(self._heap) > 2 * self.waiting + _GONE_MAX:
            self._heap = [entry for entry in self._heap if entry[2].future is not None]
            heapq.heapify(self._heap)

    # -- reading

    def _collect(self, ask: Ask) -> tuple[list[tuple[Wish, Data]], int, bool]:
        """Reads every dirty interest within the byte budget: (what was found, bytes, whether it must be told now)."""
        found: list[tuple[Wish, Data]] = []
        budget, size, settled = ask.max_bytes, 0, False
        waited = ask.future is not None
        hurries = ask.replica >= 0 and self._partitions.hurries_followers
        visit = self._reading.visit
        for interest in list(ask.session.dirty):
            # A partition that was not known when the fetch came is seen for the first time now.
            fresh = not waited or interest.look is UNKNOWN
            data = visit(ask, interest, max(0, budget - size), first=size == 0, fresh=fresh, news_only=True)
            news = _NO_NEWS
            if data is not None:
                got = data.records.size if isinstance(data.records, Spans) else 0
                size += got
                news = interest.weigh(data, got, waited=waited, hurries=hurries)
                if news is not _NO_NEWS:
                    found.append((interest, data))
                    settled = settled or news is _URGENT
            if news is _NO_NEWS and interest.look is not UNREAD:
                self._come_clean(ask, interest)
        return found, size, settled

    @staticmethod
    def _come_clean(ask: Ask, interest: Wish) -> None:
        """There is nothing to tell of it until its partition moves."""
        del ask.session.dirty[interest]
        if ask.future is not None or ask.session.id:
            interest.watch()

    def _finish(self, ask: Ask, found: list[tuple[Wish, Data]]) -> FetchResponse:
        """The reply, and the session's memory of what its fetcher knows now."""
        session, to_follower = ask.session, ask.replica >= 0
        if ask.full:
            found = found + self._untold(ask, {interest for interest, _ in found})
        if ask.toll is not None and not ask.toll.pays(_reply_bytes(found)):
            return self._withheld(ask)
        by_topic: dict[str | bytes, FetchResponse.FetchableTopicResponse] = {}
        for interest, data in found:
            if interest.told(data):
                session.dirty.pop(interest, None)
                if session.id:
                    interest.watch()
            name = interest.topic_id if session.by_id else interest.topic
            topic = by_topic.get(name)
            if topic is None:
                topic = by_topic[name] = FetchResponse.FetchableTopicResponse(
                    topic=interest.topic, topic_id=interest.topic_id
                )
            topic.partitions.append(data)
            size = data.records.size if data.records else 0  # type: ignore[union-attr]  # `_read` gives spans
            hosted = interest.hosted
            if to_follower:
                self.bytes_to_followers += size
            elif hosted is not None:
                traffic = hosted.traffic
                traffic.fetches += 1
                traffic.bytes_out += size
                if data.error_code:
                    traffic.refused_out += 1
            else:
                self.refused_elsewhere += 1
        reply = FetchResponse(session_id=session.id, responses=list(by_topic.values()))
        if ask.version >= LEADERS_SINCE and ask.listener and not to_follower:
            self._name_leaders(reply, found, ask.listener)
        return reply

    def _withheld(self, ask: Ask) -> FetchResponse:
        """The reply to a fetcher over its quota. Nothing is told to its session, so all that was found comes again.

        One that asked for a new session is left without: a client makes nothing of an empty reply to that.
        """
        session = ask.session
        if ask.full and session.id:
            self._sessions.close(session.id)
            session.id = 0
            for interest in session.interests.values():
                interest.unwatch()
        return FetchResponse(session_id=session.id)

    def _untold(self, ask: Ask, told: set[Wish]) -> list[tuple[Wish, Data]]:
        """What there is to say of the others, for a fetcher that wants to hear of all."""
        others = [interest for interest in ask.session.interests.values() if interest not in told]
        visits = ((each, self._reading.visit(ask, each, 0, first=False, fresh=False)) for each in others)
        return [(interest, data) for interest, data in visits if data is not None]

    def _name_leaders(self, reply: FetchResponse, found: list[tuple[Wish, Data]], listener: str) -> None:
        """Tells where the leaders are that the client has to turn to, so that it need not ask for them."""
        leaders = sorted({data.current_leader.leader_id for _, data in found if data.current_leader.leader_id >= 0})
        for leader in leaders:
            at = self._partitions.neighbours.reachable(NodeId(leader), listener)
            if at is not None:
                reply.node_endpoints.append(
                    FetchResponse.NodeEndpoint(node_id=leader, host=at.host, port=at.port, rack=at.rack)
                )


def _reply_bytes(found: list[tuple[Wish, Data]]) -> int:
    return sum(_PARTITION_BYTES + (data.records.size if isinstance(data.records, Spans) else 0) for _, data in found)
