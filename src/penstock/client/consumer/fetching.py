"""Keeps records coming: at most one fetch under way per broker, over a connection of its own, as long as there is room.

A partition is asked for while less than two fetches of it are buffered, and nobody is while everything together
reaches `fetch_max_bytes`. What replies mean for a partition is in `fetch_replies.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.batches import Batch
from penstock.client.consumer.fetch_replies import ReplyReader, Verdict
from penstock.client.consumer.fetch_session import (
    FINAL_EPOCH,
    NO_SESSION,
    FetchPlan,
    FetchSession,
    TopicKey,
    Wanted,
)
from penstock.client.consumer.metrics import ConsumerMetrics
from penstock.client.consumer.offsets import READ_COMMITTED, READ_UNCOMMITTED
from penstock.client.consumer.partition import AssignedPartition
from penstock.client.errors import ClientError, login_refused
from penstock.client.outage import Outage, warn
from penstock.client.retry import Backoff
from penstock.client.settings import ConsumerSettings
from penstock.model.errors import FETCH_SESSION_ID_NOT_FOUND, PenstockError
from penstock.model.ids import TopicPartition, Uuid
from penstock.model.ports import Clock
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.transport.dial import Link, LinkError

_FETCH: Final = 1
_BY_ID_FROM: Final = 13
_BY_NAME_NEWEST: Final = 12
_BUFFERED_FETCHES: Final = 2

# While partitions are left out for want of room, a fetch of the others must not keep them waiting when there is some.
_IMPATIENT_WAIT_MS: Final = 20
_GOODBYE_MS: Final = 1_000


class _Broker:
    """Our side of one broker: its connection, its session, and whether a fetch is under way."""

    __slots__ = (
        "asking", "by_id", "connecting", "failures", "link", "node_id", "outage", "reached",
        "retry_at_ms", "session",
    )  # fmt: skip

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.link: Link | None = None
        self.reached = False  # when we hung up
        self.session = FetchSession()
        self.by_id = True
        self.asking = False  # a fetch is out
        self.connecting: asyncio.Task[None] | None = None
        self.failures = 0
        self.outage = Outage.of_broker(node_id)
        self.retry_at_ms = 0.0


_Asked: TypeAlias = Mapping[tuple[TopicKey, int], tuple[AssignedPartition, int, int]]
"""What a fetch asked for, as it was then: the partition, its version and the offset."""


class Fetcher:
    """Fetches for all partitions that are ready. `wake` whenever one became ready or room was made."""

    def __init__(
        self,
        view: ClusterView,
        settings: ConsumerSettings,
        partitions: Mapping[TopicPartition, AssignedPartition],
        *,
        arrived: Callable[[AssignedPartition], None],
        out_of_range: Callable[[AssignedPartition, int], None],
        unsettled: Callable[[], None],
        metrics: ConsumerMetrics,
        backoff: Backoff,
        clock: Clock,
    ) -> None:
        """`arrived`: a partition has records or a failure. `unsettled`: one has to be validated first."""
        self._view, self._settings, self._partitions = view, settings, partitions
        self._arrived, self._unsettled, self._metrics = arrived, unsettled, metrics
        self._backoff, self._clock = backoff, clock
        self._isolation = READ_COMMITTED if settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        self._replies = ReplyReader(view, settings, out_of_range, clock)
        self._brokers: dict[int, _Broker] = {}
        self._no_metadata = Outage.of_cluster()
        self._generation = -1
        self._waking = False
        self._timer: asyncio.TimerHandle | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._unpacking: set[asyncio.Future[None]] = set()
        self._closed = False
        # With limits of zero a broker still gives one batch at a time.
        self.enough_bytes = max(1, _BUFFERED_FETCHES * settings.max_partition_fetch_bytes)
        """A partition with this much buffered is not asked for."""
        self.held_back = False  # a partition was left out for want of room

    # -- deciding what to ask

    def wake(self) -> None:
        """Looks again for something to fetch, once for all calls of a turn of the loop."""
        if not self._waking and not self._closed:
            self._waking = True
            asyncio.get_running_loop().call_soon(self.fetch_now)

    def fetch_now(self) -> None:
        """Begins a fetch at every broker that has something to give and none under way."""
        self._waking = False
        if self._closed:
            return
        self.look()
        now = self._clock.monotonic_ms()
        wanted: dict[int, list[AssignedPartition]] = {}
        room = max(1, self._settings.fetch_max_bytes)
        enough = self.enough_bytes
        held_back: set[int] = set()
        next_at = float("inf")
        leaderless = False
        for partition in self._partitions.values():
            room -= partition.buffered_bytes
            if not partition.fetchable:
                continue
            if partition.retry_at_ms > now:
                next_at = min(next_at, partition.retry_at_ms)
                continue
            node_id = self._source_of(partition, now)
            if node_id is None:
                leaderless = True
                self._view.mark_stale(partition.tp.topic)
                # The refresh that this begins looks again at once; only what it does not cure has to wait.
                if partition.failures:
                    self._give_time(partition, now)
                    next_at = min(next_at, partition.retry_at_ms)
                else:
                    partition.troubled(now)
            elif partition.buffered_bytes >= enough:
                held_back.add(node_id)
            else:
                wanted.setdefault(node_id, []).append(partition)
        self.held_back = bool(held_back) or room <= 0
        if leaderless:
            self._refresh()
        if room > 0:
            for node_id, partitions in wanted.items():
                broker = self._brokers.get(node_id)
                if broker is None:
                    broker = self._brokers[node_id] = _Broker(node_id)
                if broker.asking or broker.connecting is not None:
                    continue
                if broker.retry_at_ms > now:
                    next_at = min(next_at, broker.retry_at_ms)
                    continue
                self._begin(broker, partitions, room, node_id in held_back)
        self._set_timer(next_at - now)

    def _source_of(self, partition: AssignedPartition, now: float) -> int | None:
        if partition.read_replica is not None:
            if now < partition.read_replica_until_ms:
                return partition.read_replica
            partition.read_replica = None
        return self._view.leader_of(*partition.tp)

    def look(self) -> None:
        """What metadata says of the partitions by now, before anything is asked for, taken in or given."""
        if self._view.generation != self._generation:
            self._look_at_leaders()

    def _look_at_leaders(self) -> None:
        self._generation = self._view.generation
        unsettled = False
        for partition in self._partitions.values():
            topic = self._view.cached(partition.tp.topic)
            if topic is not None:
                was_fetchable = partition.fetchable
                # A topic that was made anew may have fewer partitions; what was fetched of the former one goes anyway.
                number = partition.tp.partition
                epoch = topic.partitions[number].leader_epoch if number < len(topic.partitions) else -1
                partition.led_anew(topic.id, epoch)
                unsettled = unsettled or was_fetchable != partition.fetchable
        if unsettled:
            self._unsettled()

    def _set_timer(self, delay_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if delay_ms < float("inf"):
            self._timer = asyncio.get_running_loop().call_later(max(1.0, delay_ms) / 1000, self.fetch_now)

    def _give_time(self, partition: AssignedPartition, now: float) -> None:
        partition.troubled(now + self._backoff.delay_ms(partition.failures + 1))

    # -- one fetch

    def _begin(self, broker: _Broker, partitions: list[AssignedPartition], room: int, impatient: bool) -> None:
        # Over a link that stands the request leaves now, before the application gets what has come already: the broker
        # works while it does.
        if broker.link is not None and broker.link.up:
            with suppress(PenstockError):  # connecting asks again and sees to it
                self._ask(broker, broker.link, partitions, room, impatient)
                return
        work = self._connect_and_ask(broker, partitions, room, impatient)
        broker.connecting = asyncio.get_running_loop().create_task(work)

    async def _connect_and_ask(
        self, broker: _Broker, partitions: list[AssignedPartition], room: int, impatient: bool
    ) -> None:
        try:
            self._ask(broker, await self._linked(broker), partitions, room, impatient)
        except PenstockError as broken:
            self._trouble(broker, broken)
        finally:
            broker.connecting = None
            self.fetch_now()

    def _ask(
        self, broker: _Broker, link: Link, partitions: list[AssignedPartition], room: int, impatient: bool
    ) -> None:
        """Sends a fetch of these partitions. The reply is read where it arrives: a task for it would cost a turn."""
        by_key, version = self._keyed(broker, link, partitions)
        plan = broker.session.plan({key: self._wish(partition) for key, partition in by_key.items()})
        asked = {key: (partition, partition.version, partition.fetch_offset) for key, partition in by_key.items()}
        request = self._request(plan, room, impatient)
        self._metrics.fetches += 1

        def on_reply(reply: FetchResponse | None, error: LinkError | None) -> None:
            broker.asking = False
            if self._closed:
                return
            if reply is None:
                # The broker may be gone for good: metadata knows who leads instead of it.
                self._trouble(broker, error)
            else:
                self._absorb(broker, reply, asked)
            self.fetch_now()

        link.post(request, version, self._settings.request_timeout_ms + request.max_wait_ms, on_reply)
        broker.asking = True

    async def _linked(self, broker: _Broker) -> Link:
        if broker.link is None or not broker.link.up:
            broker.link = None
            broker.session.failed(gone=True)
            broker.link = await self._view.dedicated_link(broker.node_id)
        return broker.link

    def _keyed(
        self, broker: _Broker, link: Link, partitions: list[AssignedPartition]
    ) -> tuple[dict[tuple[TopicKey, int], AssignedPartition], int]:
        """Partitions by topic id where both sides have ids, and the version to ask in."""
        version = link.newest(_FETCH)
        by_id = version >= _BY_ID_FROM and all(any(partition.topic_id) for partition in partitions)
        if by_id != broker.by_id:
            # A session speaks of topics in one way.
            broker.by_id = by_id
            broker.session.failed()
        if by_id:
            return {(partition.topic_id, partition.tp.partition): partition for partition in partitions}, version
        return {partition.tp: partition for partition in partitions}, min(version, _BY_NAME_NEWEST)

    def _wish(self, partition: AssignedPartition) -> Wanted:
        return partition.fetch_offset, partition.leader_epoch, self._settings.max_partition_fetch_bytes

    def _request(self, plan: FetchPlan, room: int, impatient: bool) -> FetchRequest:
        settings = self._settings
        made = FetchRequest
        topics: dict[TopicKey, FetchRequest.FetchTopic] = {}
        for (topic, index), (offset, epoch, bytes_max) in plan.said.items():
            entry = topics.get(topic)
            if entry is None:
                entry = topics[topic] = (
                    made.FetchTopic(topic=topic) if isinstance(topic, str) else made.FetchTopic(topic_id=Uuid(topic))
                )
            entry.partitions.append(
                made.FetchPartition(
                    partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=bytes_max
                )
            )
        wait_ms = settings.fetch_max_wait_ms
        return made(
            max_wait_ms=min(wait_ms, _IMPATIENT_WAIT_MS) if impatient else wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=min(settings.fetch_max_bytes, room),
            isolation_level=self._isolation,
            session_id=plan.session_id,
            session_epoch=plan.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=_forgotten(plan),
            rack_id=settings.client_rack,
        )

    # -- what came back

    def _absorb(self, broker: _Broker, reply: FetchResponse, asked: _Asked) -> None:
        self.look()
        now = self._clock.monotonic_ms()
        if reply.error_code:
            broker.session.failed(gone=reply.error_code == FETCH_SESSION_ID_NOT_FOUND.code)
            self._metrics.fetch_errors += 1
            if broker.failures:
                self._view.mark_stale()
                self._refresh()
            broker.failures += 1
            if broker.failures > 1:
                broker.retry_at_ms = now + self._backoff.delay_ms(broker.failures)
            return
        if broker.failures:
            broker.failures, broker.retry_at_ms = 0, 0.0
            warn(broker.outage.over(now))
        broker.session.replied(reply.session_id)
        endpoints = {node.node_id: (node.host, node.port) for node in reply.node_endpoints}
        refresh = False
        for topic in reply.responses:
            key: TopicKey = topic.topic_id if broker.by_id else topic.topic
            for data in topic.partitions:
                entry = asked.get((key, data.partition_index))
                if entry is None:
                    continue
                partition, version, offset = entry
                if partition.version != version or partition.fetch_offset != offset or not partition.awaits_fetch:
                    continue
                verdict = self._replies.read(partition, data, offset, broker.node_id, endpoints)
                if verdict is Verdict.FINE:
                    self._take_in(partition, data)
                    continue
                self._metrics.fetch_errors += 1
                if verdict is Verdict.LATER:
                    refresh = True
                    self._view.mark_stale(partition.tp.topic)
                    self._give_time(partition, now)
                elif partition.failure is not None:
                    self._arrived(partition)
        if refresh:
            self._refresh()

    def _take_in(self, partition: AssignedPartition, data: FetchResponse.PartitionData) -> None:
        partition.failures, partition.retry_at_ms = 0, 0.0
        if not data.records:
            return
        batches = self._replies.batches_of(partition, data)
        if not batches:
            return
        self._metrics.bytes_fetched += sum(batch.size for batch in batches)
        partition.put(batches)
        large = [batch for batch in batches if batch.large]
        if large:
            self._unpack(partition, large)
        self._arrived(partition)

    def _unpack(self, partition: AssignedPartition, batches: list[Batch]) -> None:
        """Decompresses in a thread what would hold up the loop; the partition has nothing to give until then."""
        for batch in batches:
            batch.unpacking = True
        work: asyncio.Future[None] = asyncio.get_running_loop().run_in_executor(None, _unpack_all, batches)
        self._unpacking.add(work)

        def done(finished: asyncio.Future[None]) -> None:
            self._unpacking.discard(finished)
            for batch in batches:
                batch.unpacking = False
            partition.recount()
            if not partition.gone and not self._closed:
                self._arrived(partition)

        work.add_done_callback(done)

    def _trouble(self, broker: _Broker, why: PenstockError | None) -> None:
        now = self._clock.monotonic_ms()
        self._metrics.fetch_errors += 1
        broker.session.failed()
        broker.failures += 1
        if isinstance(why, ClientError) and login_refused(why):
            self._give_up(why)
            return
        broker.retry_at_ms = now + self._backoff.delay_ms(broker.failures)
        if broker.failures > 1:
            # A connection that broke and is made again at once is no news.
            warn(broker.outage.failed(now, why))
        for partition in self._partitions.values():
            if partition.read_replica == broker.node_id:
                partition.read_replica = None
        self._view.mark_stale()
        self._refresh()

    def _give_up(self, why: ClientError) -> None:
        """No broker takes our login any more: the application is told by its next poll."""
        for partition in self._partitions.values():
            if partition.failure is None:
                partition.fail(why)
                self._arrived(partition)

    def _refresh(self) -> None:
        if self._refreshing is None and not self._closed:
            self._view.follow(*dict.fromkeys(tp.topic for tp in self._partitions))
            self._refreshing = asyncio.get_running_loop().create_task(self._refreshed())

    async def _refreshed(self) -> None:
        try:
            await self._view.refreshed()
            warn(self._no_metadata.over(self._clock.monotonic_ms()))
        except ClientError as broken:
            warn(self._no_metadata.failed(self._clock.monotonic_ms(), broken))
        finally:
            self._refreshing = None
            self.wake()

    # -- the end

    def cancel(self) -> None:
        """Ends what is under way and hangs up; `close` waits for that. Never blocks, so nothing can keep it from it."""
        self._closed = True
        self._set_timer(float("inf"))
        for task in self._under_way():
            task.cancel()
        for broker in self._brokers.values():
            if broker.link is not None:
                broker.reached = broker.link.up
                broker.link.abort()
                broker.link = None

    def _under_way(self) -> list[asyncio.Task[None]]:
        return [task for task in (self._refreshing, *(each.connecting for each in self._brokers.values())) if task]

    async def close(self) -> None:
        """Ends what is under way, closes the connections and tells brokers to forget the sessions."""
        self.cancel()
        await asyncio.gather(*self._under_way(), *self._unpacking, return_exceptions=True)
        self.cancel()  # a connection that was just being made
        await asyncio.gather(*(self._goodbye(broker) for broker in self._brokers.values()))

    async def _goodbye(self, broker: _Broker) -> None:
        """Frees the broker's memory of us. Over the shared connection: on our own one a long fetch was under way."""
        if broker.session.session_id == NO_SESSION or not broker.reached:
            return
        ending = FetchRequest(session_id=broker.session.session_id, session_epoch=FINAL_EPOCH)
        try:
            async with asyncio.timeout(_GOODBYE_MS / 1000):
                await self._view.ask(broker.node_id, ending)
        except (LinkError, PenstockError, TimeoutError):
            return


def _unpack_all(batches: list[Batch]) -> None:
    for batch in batches:
        batch.prepare()


def _forgotten(plan: FetchPlan) -> list[FetchRequest.ForgottenTopic]:
    made = FetchRequest.ForgottenTopic
    found: dict[TopicKey, FetchRequest.ForgottenTopic] = {}
    for topic, index in plan.forgotten:
        entry = found.get(topic)
        if entry is None:
            entry = found[topic] = made(topic=topic) if isinstance(topic, str) else made(topic_id=Uuid(topic))
        entry.partitions.append(index)
    return list(found.values())
