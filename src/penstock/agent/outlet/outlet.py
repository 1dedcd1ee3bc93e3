"""The agent's way to the brokers: one producer, a lane for each input, one bound for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from penstock.agent.counting import Counts, OutletStatus
from penstock.agent.environment import monotonic_ms, now_ms
from penstock.agent.outlet.column_producer import ColumnProducer
from penstock.agent.outlet.committing import Transactions
from penstock.agent.outlet.lane import Lane
from penstock.agent.outlet.memory import MemoryGate
from penstock.agent.outlet.shipment import Shipment
from penstock.agent.outlet.topics import Topics
from penstock.agent.outlet.watch import Watch
from penstock.agent.settings.producing import UNKNOWN_TOPIC_AFTER_MS
from penstock.agent.spool.spool import Spool
from penstock.agent.telling import Teller
from penstock.client.retry import Backoff

WINDOW_BYTES_MAX: Final = 16 << 20
WINDOW_SHARE: Final = 4
"""The producer holds a copy of what it was given: one part in so many of the memory, and no more than the maximum."""

LANE_WINDOW_BYTES_MIN: Final = 1 << 20

PUMP_BYTES: Final = 4 << 20
"""So much is handed over before others have their turn on the loop."""

TICK_S: Final = 0.25
OVERDUE_MS: Final = 5_000
"""A shipment that is under way for so long though brokers answer: does its topic still exist?"""
OTHERS_WITHIN_MS: Final = 1_000
RETRY_FIRST_MS: Final = 200
RETRY_LONGEST_MS: Final = 10_000


class Outlet:
    """Carries shipments from lanes to brokers. Everything is called on the loop; `start` it, `close` it."""

    def __init__(
        self,
        producer_settings: Mapping[str, Any],
        memory_bytes: int,
        spool: Spool | None = None,
        *,
        spool_after_ms: int = 5_000,
        unknown_topic_after_ms: int = UNKNOWN_TOPIC_AFTER_MS,
        teller: Teller | None = None,
    ) -> None:
        """`producer_settings` are keywords of `Producer`, as `settings.producing` makes them."""
        self.memory = MemoryGate(memory_bytes)
        self.spool = spool
        self.spool_after_ms = spool_after_ms
        self.teller = teller or Teller()
        self.backoff = Backoff(RETRY_FIRST_MS, RETRY_LONGEST_MS)
        self.now_ms = now_ms
        self.lanes: dict[str, Lane] = {}
        self.counts: dict[str, Counts] = {}
        """By input, also of those whose lane came and went: counters only rise."""
        self._turns: deque[Lane] = deque()
        self.in_flight_bytes = 0
        self.saving = 0
        """How many writes to the spool are under way whose shipments are in no queue."""
        self.transactions: Transactions | None = None
        """With `exactly_once`; set before anything is shipped."""
        self.stopping = False
        self.closing = False
        self._held = False
        self._replacing = asyncio.Lock()
        self._pumping = False
        self._settled = asyncio.Event()
        self._ticking: asyncio.Task[None] | None = None
        self._searching: asyncio.Task[None] | None = None
        self.set_producer(producer_settings, unknown_topic_after_ms)

    def set_producer(self, settings: Mapping[str, Any], unknown_topic_after_ms: int) -> None:
        """Another one, which is the caller's to close."""
        self._producer_settings, self._unknown_topic_after_ms = settings, unknown_topic_after_ms
        self.producer = ColumnProducer(**settings)
        self.record_bytes_max = self.producer.settings.max_request_size
        self.topics = Topics(
            self.producer,
            unknown_after_ms=unknown_topic_after_ms,
            created=self.producer.settings.create_topics,
            tell=self.tell,
            wake=self._topic_answered,
        )
        made = self.producer.settings
        self.watch = Watch(",".join(made.bootstrap_servers), made.client_id, self.tell, made.dial_security())

    @property
    def made_of(self) -> tuple[Mapping[str, Any], int]:
        """Settings of the producer, and how long a topic may be unknown."""
        return self._producer_settings, self._unknown_topic_after_ms

    # Life.

    async def start(self) -> None:
        """Opens the spool and begins to watch. It goes well without any broker."""
        if self.spool is not None:
            await self.spool.open()
            for name in self.spool.names:
                self.lane(name, spools=True)
        self.watch.start()
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def lane(self, name: str, *, spools: bool) -> Lane:
        """The lane of an input; the same one for the same name, as long as it has something."""
        lane = self.lanes.get(name)
        if lane is None:
            counts = self.counts.setdefault(name, Counts())
            lane = self.lanes[name] = Lane(name, self, self.memory.share(), counts, spools=spools)
            self._turns.append(lane)
        lane.retired = False
        return lane

    def retire(self, name: str) -> None:
        """An input is gone for good; its lane goes when it is empty."""
        lane = self.lanes.get(name)
        if lane is not None:
            lane.retired = True
            self._sweep()

    def _sweep(self) -> None:
        for name, lane in list(self.lanes.items()):
            spooling = lane.spooling is not None and lane.spooling.active
            if lane.retired and lane.idle and not spooling and not lane.share.used_bytes:
                del self.lanes[name]
                self._turns.remove(lane)
                self.memory.leave(lane.share)
                lane.close()

    async def flush(self, within_ms: float, name: str | None = None) -> bool:
        """Waits until everything that was shipped, or was by one input, is acknowledged. False when time ran out."""
        try:
            async with asyncio.timeout(max(within_ms, 0) / 1000):
                while not self._flushed(name):
                    self._settled.clear()
                    if self.transactions is not None:
                        self.transactions.hurry()
                    self.pump()
                    await self._settled.wait()
        except TimeoutError:
            return self._flushed(name)
        return True

    def _flushed(self, name: str | None) -> bool:
        lanes = self.lanes.values() if name is None else [lane for lane in [self.lanes.get(name)] if lane is not None]
        return not self.saving and not any(lane.unsafe or lane.flying for lane in lanes)

    async def stop(self, flush_within_ms: float) -> bool:
        """The last flush. What brokers do not take in time goes to the spool, for inputs that have one."""
        self.stopping = True
        flushed = await self.flush(flush_within_ms)
        for lane in self.lanes.values():
            if lane.spooling is not None:
                if lane.unsafe:
                    await lane.spooling.save_all()
                await lane.spooling.settle_disk()
        return flushed or not any(lane.unsafe for lane in self.lanes.values())

    async def close(self) -> None:
        """Ends at once; call `stop` before. What is not settled is never told to be done."""
        self.closing = self.stopping = True
        for task in (self._ticking, self._searching):
            if task is not None:
                task.cancel()
        self.topics.close()
        self.watch.close()
        await self.producer.close(0)
        for lane in self.lanes.values():
            lane.close()
        if self.spool is not None:
            await self.spool.close()

    async def replace_producer(
        self, settings: Mapping[str, Any], unknown_topic_after_ms: int, flush_within_ms: float
    ) -> None:
        """Goes on with other settings. What is under way gets `flush_within_ms`, and is then sent by the new one."""
        if self.transactions is not None:
            await self.transactions.replace(settings, unknown_topic_after_ms, flush_within_ms)
            return
        async with self._replacing:
            self._held = True
            try:
                async with asyncio.timeout(flush_within_ms / 1000):
                    await self.all_landed()
            except TimeoutError:
                self.tell("brokers did not take everything before their connection was replaced; it is sent again")
            await self.change_producer(settings, unknown_topic_after_ms)
            self._held = False
            self._topic_answered()

    async def change_producer(self, settings: Mapping[str, Any], unknown_topic_after_ms: int) -> None:
        """Closes the one that is there, so that it gives back what it has, and makes another."""
        self.topics.close()
        self.watch.close()
        await self.producer.close(0)
        self.set_producer(settings, unknown_topic_after_ms)
        self.watch.start()

    async def all_landed(self) -> None:
        """Returns when the producer has nothing more of any lane."""
        while any(lane.flying for lane in self.lanes.values()):
            self._settled.clear()
            await self._settled.wait()

    # Shipments.

    @property
    def _lane_window_bytes(self) -> int:
        """What each lane may have under way: one whose topic has no leader must not stop the others."""
        busy = sum(not lane.idle for lane in self.lanes.values())
        window = min(self.memory.limit_bytes // WINDOW_SHARE, WINDOW_BYTES_MAX)
        return min(max(window // max(busy, 1), LANE_WINDOW_BYTES_MIN), window)

    def pump(self) -> None:
        """Hands over what waits, a shipment of each lane in turn, as far as their windows go."""
        if self._pumping:
            return
        self._pumping = True
        handed_bytes = 0
        try:
            while self._may_take_off and (lane := self._next_ready()) is not None:
                before = self.in_flight_bytes
                lane.hand_over()
                handed_bytes += self.in_flight_bytes - before
                if handed_bytes >= PUMP_BYTES:
                    asyncio.get_running_loop().call_soon(self.pump)
                    return
        finally:
            self._pumping = False

    @property
    def _may_take_off(self) -> bool:
        # A transaction is full at any of the shipments.
        return not self._held and not self.closing and (self.transactions is None or self.transactions.open)

    def _next_ready(self) -> Lane | None:
        for _ in range(len(self._turns)):
            lane = self._turns[0]
            self._turns.rotate(-1)
            if lane.spooling is not None:
                lane.spooling.look()
            if lane.ready and (not lane.flying_bytes or lane.flying_bytes < self._lane_window_bytes):
                return lane
        return None

    def took_off(self, shipment: Shipment) -> None:
        self.in_flight_bytes += shipment.size_bytes
        if self.transactions is not None:
            self.transactions.took_off(shipment.size_bytes)

    def landed(self, shipment: Shipment) -> None:
        self.in_flight_bytes -= shipment.size_bytes
        self._settled.set()

    def settled(self) -> None:
        self._settled.set()

    def producer_changed(self) -> None:
        """What is known of topics is to be asked anew."""
        self._topic_answered()

    def _topic_answered(self) -> None:
        for lane in self.lanes.values():
            lane.topic_answered()
        if not self.closing:
            self.pump()

    # Upkeep.

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            for lane in self.lanes.values():
                if lane.spooling is not None:
                    lane.spooling.check()
            self._sweep()
            self._look_for_lost_topics()
            self.pump()

    def _look_for_lost_topics(self) -> None:
        """The producer tries for ever what it has; whether that makes sense is asked here."""
        if self._searching is not None or self.stopping or not self.watch.reachable:
            return
        limit_ms = monotonic_ms() - OVERDUE_MS
        oldest = [lane.oldest for lane in self.lanes.values()]
        topics = {
            parcel.topic
            for shipment in oldest
            if shipment is not None and shipment.took_off_ms < limit_ms
            for parcel in (*shipment.parcels, *shipment.dead)
        }
        if topics:
            self._searching = asyncio.get_running_loop().create_task(self._search(sorted(topics)))

    async def _search(self, topics: list[str]) -> None:
        try:
            gone = [topic for topic in topics if await self.topics.gone(topic)]
            if gone:
                # Only a producer that is closed gives back what it has; the rest of it gets time to arrive before.
                refusals = self.topics
                await self.replace_producer(*self.made_of, OTHERS_WITHIN_MS)
                self.topics.take_over(refusals)
        finally:
            self._searching = None
            self.pump()

    # Telling.

    def tell(self, words: str) -> None:
        self.teller.wrong(words)

    def status(self) -> OutletStatus:
        spool = self.spool
        return OutletStatus(
            bootstrap=",".join(self.producer.settings.bootstrap_servers),
            memory_used_bytes=self.memory.used_bytes,
            memory_limit_bytes=self.memory.limit_bytes,
            in_flight_bytes=self.in_flight_bytes,
            spool_bytes=0 if spool is None else spool.used_bytes,
            spool_limit_bytes=0 if spool is None else spool.cap_bytes,
            spooling=any(lane.spooling is not None and lane.spooling.active for lane in self.lanes.values()),
            brokers_reachable=self.watch.reachable,
            silent_ms=int(max((lane.silent_ms for lane in self.lanes.values()), default=0)),
            last_error=self.teller.last_error,
            last_error_at_ms=self.teller.last_error_at_ms,
        )
