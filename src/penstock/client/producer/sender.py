"""Batches to brokers: who leads, what may be sent, what the answers mean. Everything here runs on the loop.

`pump` is the heart: called once after anything happened, it closes what has lingered, expires what is too old, and
puts ready batches into as few requests as there are leaders. It never waits; what waits are small tasks for a
connection, metadata or a producer id, and each of them ends with another pump.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from penstock.client.cluster_view import ClusterView
from penstock.client.errors import (
    BrokerRefused,
    ClientError,
    Closed,
    TimedOutWaiting,
    UnknownTopic,
    link_failure,
    login_refused,
)
from penstock.client.outage import Outage, warn
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.answers import Answers
from penstock.client.producer.channel import Channel
from penstock.client.producer.identity import Identity
from penstock.client.producer.lane import Batch, Lane
from penstock.client.producer.metrics import ProducerMetrics
from penstock.client.producer.parked import Parked
from penstock.client.producer.requests import produce_request, takes_codec, version_for
from penstock.client.producer.topic_lanes import TopicLanes
from penstock.client.retry import Backoff
from penstock.client.settings import ProducerSettings
from penstock.kernels import HEADER_BYTES
from penstock.model.errors import UNSUPPORTED_COMPRESSION_TYPE
from penstock.model.ports import Clock
from penstock.protocol.compression import CODECS
from penstock.transport.dial import Link, LinkError, TimedOut

if TYPE_CHECKING:
    from penstock.client.producer.transactions.driver import TransactionDriver

log = logging.getLogger("penstock.client")

NO_REPLY = 0
_TIMER_SLACK_MS = 0.5
_TIMER_TICK_MS = 1.0


class Sender:
    """Drives one accumulator against one cluster, from `start` to `stop`."""

    def __init__(self, settings: ProducerSettings, view: ClusterView, clock: Clock, backoff: Backoff) -> None:
        self.settings, self.view, self.clock, self.backoff = settings, view, clock, backoff
        self.identity = Identity()
        self.transactions: TransactionDriver | None = None
        self.metrics = ProducerMetrics()
        self.channels: dict[int, Channel] = {}
        self._codec = CODECS[settings.compression]
        self._orphans: dict[Lane, None] = {}
        self._absent_since_ms: dict[str, float] = {}
        self._no_metadata = Outage.of_cluster()
        self._no_producer_id = Outage("no producer id yet", "there is a producer id")
        self._tasks: set[asyncio.Task[Any]] = set()
        self._learning: dict[str, asyncio.Task[Any]] = {}
        self._refreshing: asyncio.Task[Any] | None = None
        self._identifying: asyncio.Task[Any] | None = None
        self._scheduled = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0.0

    def start(self, loop: asyncio.AbstractEventLoop, accumulator: Accumulator, *, threads: bool) -> None:
        """`threads` tells that records are appended from other threads than the loop's."""
        self._loop = loop
        self.accumulator = accumulator
        self._soon: Callable[..., Any] = loop.call_soon_threadsafe if threads else loop.call_soon
        if self.transactions is not None:
            self.transactions.start(loop)
            accumulator.on_lost = self.transactions.lose
        self.answers = Answers(self)
        self.view.when_changed(self._topology_changed)

    def stop(self) -> None:
        """Ends every task and connection. What is still under way must have been failed before."""
        self._stopped = True
        if self.transactions is not None:
            self.transactions.stop()
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        for channel in self.channels.values():
            channel.close()

    def nudge(self) -> None:
        """Something happened; from any thread."""
        if not self._scheduled and not self._stopped:
            self._scheduled = True
            self._soon(self.pump)

    def pump(self) -> None:
        self._scheduled = False
        if self._stopped:
            return
        now_ms = self.clock.monotonic_ms()
        accumulator = self.accumulator
        requests: list[tuple[Channel, list[Batch]]] = []
        with accumulator.lock:
            accumulator.mark_due(now_ms)
            self._expire(now_ms)
            if accumulator.waiting or accumulator.blocked_threads or accumulator.room_wakers:
                accumulator.serve_waiting()
            ready, accumulator.ready = accumulator.ready, {}
            for lane in ready:
                self._route(lane)
            if not self.settings.idempotence or self.identity.current is not None:
                for channel in self.channels.values():
                    if channel.ready and not channel.muted:
                        self._plan(channel, requests)
            elif ready or self._orphans or any(channel.ready for channel in self.channels.values()):
                self._identify()
            next_ms = accumulator.next_wake_ms()
        for channel, batches in requests:
            self._post(channel, batches)
        self.answers.tell()
        self._arm(now_ms, next_ms)

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return sum(channel.in_flight for channel in self.channels.values())

    # What goes where.

    def _route(self, lane: Lane) -> None:
        leader = self.view.leader_of(lane.topic, lane.partition)
        lane.leader = leader
        if leader is None:
            self._orphans[lane] = None
            self.refresh(lane.topic)
            return
        channel = self.channels.get(leader)
        if channel is None:
            channel = self.channels[leader] = Channel(leader)
        channel.ready[lane] = None

    def _plan(self, channel: Channel, requests: list[tuple[Channel, list[Batch]]]) -> None:
        """Takes what fits into as many requests as may be out."""
        if not channel.up:
            self._connect(channel)
            return
        planned = 0
        while channel.ready and channel.in_flight + planned < self.settings.max_in_flight:
            batches = self._fill_request(channel)
            if not batches:
                break
            planned += 1
            requests.append((channel, batches))

    def _fill_request(self, channel: Channel) -> list[Batch]:
        batches: list[Batch] = []
        left = self.settings.max_request_size
        for lane in list(channel.ready):
            if lane.leader != channel.node_id:
                del channel.ready[lane]
                self.accumulator.ready[lane] = None
                self.nudge()
                continue
            batch = self._pick(lane)
            if batch is None:
                del channel.ready[lane]
                continue
            size = batch.size + (HEADER_BYTES if batch.sealed is None else 0)
            if batches and size > left:
                break
            del channel.ready[lane]
            lane.launch(batch, self.identity.current, self._seal)
            left -= batch.size
            batches.append(batch)
            if lane.has_work():
                channel.ready[lane] = None
        return batches

    def _pick(self, lane: Lane) -> Batch | None:
        identity = self.identity.current
        if lane.needs_new_epoch and lane.has_work():
            if identity is None:
                self.accumulator.ready[lane] = None
                return None
            # The epoch that the lane broke in may have been left by another lane already.
            if lane.producer == identity:
                if self.transactions is not None:
                    return None  # only the end of the transaction brings another epoch
                self.identity.bump()
                identity = self.identity.current
                if identity is None:
                    self.accumulator.ready[lane] = None
                    self.nudge()
                    return None
            lane.begin_epoch(identity)
        if self.settings.idempotence and identity is None:
            self.accumulator.ready[lane] = None
            return None
        batch = lane.next_batch(identity)
        if self.transactions is not None and batch is not None and not self.transactions.admits(lane):
            return None
        return batch

    def _seal(self, batch: Batch, sequence: int) -> None:
        self.accumulator.left(batch)
        producer = batch.lane.producer if self.settings.idempotence else None
        batch.seal(self._codec, self.settings.compression_level, producer, sequence, self.transactions is not None)

    def _post(self, channel: Channel, batches: list[Batch]) -> None:
        link = channel.link
        assert link is not None
        settings = self.settings
        try:
            newest = None if self.transactions is None else self.transactions.produce_newest
            version = version_for(link, self.view, batches, newest)
        except LinkError as unsupported:
            self.answers.refused(batches, link_failure(unsupported))
            return
        if not takes_codec(version, self._codec):
            why = f"the broker is too old for {settings.compression}"
            self.answers.refused(batches, BrokerRefused(why, error=UNSUPPORTED_COMPRESSION_TYPE))
            return
        request = produce_request(
            self.view, batches, settings.acks, settings.request_timeout_ms, settings.transactional_id
        )
        metrics = self.metrics
        metrics.requests += 1
        metrics.batches_sent += len(batches)
        metrics.bytes_sent += sum(batch.size for batch in batches)
        if settings.acks == NO_REPLY:
            self._tell(link, request, version, batches)
            return
        channel.in_flight += 1

        def on_reply(reply: Any, error: LinkError | None) -> None:
            channel.in_flight -= 1
            if isinstance(error, TimedOut):
                # A broker that does not answer is as good as gone; what else is out there is tried elsewhere.
                link.abort()
            self.answers.arrived(channel, request, version, batches, reply, error)

        link.post(request, version, settings.request_timeout_ms, on_reply)

    def _tell(self, link: Link, request: Any, version: int, batches: list[Batch]) -> None:
        try:
            link.tell(request, version)
        except LinkError as broken:
            self.answers.unknown(batches, broken)
            return
        self.answers.unconfirmed(batches)

    # Time.

    def _expire(self, now_ms: float) -> None:
        expiring = self.accumulator.expiring
        while expiring and (expiring[0].done or expiring[0].pieces or expiring[0].deadline_ms <= now_ms):
            batch = expiring.popleft()
            if not batch.done and not batch.pieces:
                self.answers.expire(batch)
        for item in self.accumulator.overdue(now_ms):
            why = f"there was no room in the buffer within {self.settings.max_block_ms} ms (max_block_ms)"
            self.accumulator.give_up_on(item, TimedOutWaiting(why, where=f"topic {item.topic!r}", retriable=True))

    def _arm(self, now_ms: float, next_ms: float | None) -> None:
        if next_ms is None:
            return
        if self._timer is not None:
            if self._timer_at_ms <= next_ms + _TIMER_SLACK_MS:
                return
            self._timer.cancel()
        self._timer_at_ms = next_ms
        # At least a tick for what is still to come: a timer that rang just before its time would ring again and again.
        delay_ms = max(next_ms - now_ms, _TIMER_TICK_MS) if next_ms > now_ms else 0
        self._timer = self._loop.call_later(delay_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.pump()

    def rest(self, lane: Lane, delay_ms: float) -> None:
        """Nothing of a lane is sent for a while."""
        if self._stopped:
            return
        lane.resting = True
        self._loop.call_later(delay_ms / 1000, self._rested, lane)

    def _rested(self, lane: Lane) -> None:
        lane.resting = False
        self.wake(lane)

    def wake(self, lane: Lane) -> None:
        if lane.has_work() and not self._stopped:
            with self.accumulator.lock:
                self.accumulator.ready[lane] = None
            self.nudge()

    def mute(self, channel: Channel, throttle_ms: int) -> None:
        """The broker asks for a pause."""
        channel.muted = True

        def unmute() -> None:
            channel.muted = False
            self.nudge()

        self._loop.call_later(throttle_ms / 1000, unmute)

    # What has to be waited for.

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _connect(self, channel: Channel) -> None:
        if channel.connecting is None:
            channel.connecting = self._spawn(self._connected(channel))

    async def _connected(self, channel: Channel) -> None:
        try:
            link = await self.view.dedicated_link(channel.node_id)
            channel.link, channel.failures = link, 0
            link.when_lost(self.nudge)
            warn(channel.outage.over(self.clock.monotonic_ms()))
        except ClientError as broken:
            self.metrics.connection_failures += 1
            channel.failures += 1
            if self._hopeless(broken):
                return
            warn(channel.outage.failed(self.clock.monotonic_ms(), broken))
            with self.accumulator.lock:
                # Its partitions may have another leader by now.
                for lane in channel.ready:
                    for batch in (*lane.queue, lane.open):
                        if batch is not None:
                            batch.last_error = broken
                    self.view.mark_stale(lane.topic)
            await self._look_elsewhere(channel)
            with self.accumulator.lock:
                self.accumulator.ready.update(channel.ready)
                channel.ready.clear()
        finally:
            channel.connecting = None
            self.nudge()

    def _hopeless(self, failure: ClientError) -> bool:
        """Whether no broker takes our login, so that nothing can be sent: whoever waits is told now."""
        if not login_refused(failure):
            return False
        log.error("%s", failure)
        self.answers.fail_everything(failure)
        return True

    async def _look_elsewhere(self, channel: Channel) -> None:
        """The pause before a broker is dialled again; what gets another leader meanwhile does not wait for its end."""
        until_s = self._loop.time() + self.backoff.delay_ms(channel.failures) / 1000
        while (left_s := until_s - self._loop.time()) > 0 and channel.ready:
            self.refresh(None)
            await asyncio.sleep(min(left_s, self.backoff.first_ms / 1000))
            with self.accumulator.lock:
                moved = [lane for lane in channel.ready if lane.leader != channel.node_id]
                for lane in moved:
                    del channel.ready[lane]
                    self.accumulator.ready[lane] = None
            if moved:
                self.nudge()

    def refresh(self, topic: str | None) -> None:
        """Asks for metadata, once for all who want it."""
        if topic is not None:
            self.view.mark_stale(topic)
            self.view.follow(topic)
        if self._refreshing is None and not self._stopped:
            self._refreshing = self._spawn(self._refreshed())

    async def _refreshed(self) -> None:
        """Until an answer came and every lane has a leader, or nothing waits to be sent any more."""
        failures = 0
        try:
            while True:
                # A broker that is behind may not know the topic yet; then nobody asks for it any more but we.
                self.view.follow(*sorted({lane.topic for lane in self._orphans}))
                answered = await self._asked_for_metadata()
                failures += 1
                with self.accumulator.lock:
                    self._adopt_orphans()
                if not self._orphans and (answered or not self.accumulator.pending):
                    return
                await asyncio.sleep(self.backoff.delay_ms(failures) / 1000)
        finally:
            self._refreshing = None
            self.nudge()

    async def _asked_for_metadata(self) -> bool:
        """Whether any broker answered."""
        try:
            await self.view.refreshed()
        except ClientError as broken:
            if not self._hopeless(broken):
                warn(self._no_metadata.failed(self.clock.monotonic_ms(), broken))
            return False
        warn(self._no_metadata.over(self.clock.monotonic_ms()))
        return True

    def _adopt_orphans(self) -> None:
        led = [lane for lane in self._orphans if self.view.leader_of(lane.topic, lane.partition) is not None]
        for lane in led:
            del self._orphans[lane]
            self.accumulator.ready[lane] = None
        for lane in [lane for lane in self._orphans if not lane.has_work()]:
            del self._orphans[lane]

    def _topology_changed(self) -> None:
        with self.accumulator.lock:
            for name, held in list(self.accumulator.topics.items()):
                found = self.view.cached(name)
                if found is None:
                    self._forget_when_gone(name, held)
                    continue
                self._absent_since_ms.pop(name, None)
                for lane in held.learn(found.leaders):
                    if lane.resting:
                        # It rests because of a leader that it no longer has.
                        lane.resting, lane.failures = False, 0
                        self.accumulator.ready[lane] = None
            self._adopt_orphans()
        self.nudge()

    def _forget_when_gone(self, name: str, held: TopicLanes) -> None:
        """A topic that no broker has known for `metadata_max_age_ms` was deleted, and nothing of it is kept.

        Not sooner: a broker that lags behind may deny a topic that there is, and lanes made anew would number their
        batches as those that it has.
        """
        now_ms = self.clock.monotonic_ms()
        since_ms = self._absent_since_ms.setdefault(name, now_ms)
        if now_ms - since_ms >= self.settings.metadata_max_age_ms and held.idle:
            del self.accumulator.topics[name], self._absent_since_ms[name]

    def _identify(self) -> None:
        if self._identifying is None and self.transactions is None:
            self._identifying = self._spawn(self._identified())

    async def _identified(self) -> None:
        failures = 0
        try:
            while self.identity.current is None:
                try:
                    await self.identity.obtain(self.view)
                except (LinkError, ClientError) as wrong:
                    failure = wrong if isinstance(wrong, ClientError) else link_failure(wrong)
                    if not failure.retriable:
                        log.error("no producer id: %s", failure)
                        self.answers.fail_everything(failure)
                        return
                    failures += 1
                    warn(self._no_producer_id.failed(self.clock.monotonic_ms(), failure))
                    await asyncio.sleep(self.backoff.delay_ms(failures) / 1000)
            warn(self._no_producer_id.over(self.clock.monotonic_ms()))
        finally:
            self._identifying = None
            self.nudge()

    def learn_if_unknown(self, topic: str, partition: int | None) -> None:
        """For a thread that waits, for its topic or only for room."""
        if not self.accumulator.knows(topic, partition):
            self.learn(topic)

    def learn(self, topic: str) -> None:
        """Asks for a topic that records wait for."""
        if topic not in self._learning and not self._stopped:
            self._learning[topic] = self._spawn(self._learned(topic))

    async def _learned(self, topic: str) -> None:
        settings, accumulator = self.settings, self.accumulator
        deadline_ms = self.clock.monotonic_ms() + settings.max_block_ms
        failure: ClientError | None = None
        failures = 0
        try:
            while True:
                left_ms = max(deadline_ms - self.clock.monotonic_ms(), 0)
                found = await self.view.topic(topic, create=settings.create_topics, timeout_ms=left_ms)
                with accumulator.lock:
                    accumulator.know(topic, found.leaders)
                beyond = self._beyond(topic, len(found.partitions))
                if beyond is None:
                    return
                failures += 1
                delay_ms = self.backoff.delay_ms(failures)
                if self.clock.monotonic_ms() + delay_ms >= deadline_ms or beyond < 0:
                    raise UnknownTopic(
                        f"partition {beyond} does not exist; it has {len(found.partitions)}", where=f"topic {topic!r}"
                    )
                await asyncio.sleep(delay_ms / 1000)
                self.view.mark_stale(topic)
        except ClientError as refused:
            failure = refused
        finally:
            del self._learning[topic]
            if self._stopped:
                failure = failure or Closed("the producer is closed")
            self._told(topic, failure)

    def _beyond(self, topic: str, partitions: int) -> int | None:
        """A partition that a record waits for and the topic does not have."""
        wanted = [
            item.partition if isinstance(item, Parked) else item.bulk.partition
            for item in self.accumulator.unknown.get(topic, ())
        ]
        wanted += self.accumulator.awaited.get(topic, ())
        return next((one for one in wanted if one is not None and not 0 <= one < partitions), None)

    def _told(self, topic: str, failure: ClientError | None) -> None:
        accumulator = self.accumulator
        with accumulator.lock:
            accumulator.learned(topic, failure)
            if failure is None:
                accumulator.unpark(topic)
                self.nudge()
                return
            items = accumulator.give_up(topic)
        for item in items:
            accumulator.give_up_on(item, failure)
