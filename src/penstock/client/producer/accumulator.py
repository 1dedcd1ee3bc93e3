"""Records become batches here, and memory is kept: the buffer between those who send and the sender.

Everything is a plain call under `lock`, without a loop: the asyncio producer appends on the loop's own thread and
needs no lock for it, the blocking one appends from the caller's thread and takes it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from penstock.client.clock import SYSTEM_CLOCK
from penstock.client.errors import BufferFull, ClientError, RecordTooLarge
from penstock.client.producer.delivery import Delivery, OnDelivery, Wake
from penstock.client.producer.lane import Batch, Lane
from penstock.client.producer.parked import Headers, Parked, ParkedBulk, Payload, size_of
from penstock.client.producer.topic_lanes import TopicLanes
from penstock.client.settings import ProducerSettings
from penstock.kernels import HEADER_BYTES, Desk, RecordsBuilder
from penstock.model.ports import Clock
from penstock.model.units import bytes_text

REQUEST_OVERHEAD_BYTES = 512
"""What a request needs besides one batch: headers, the topic's name."""

ROOMY_SHARE = 16
"""Who waits for room is woken when one part in so many of the buffer is free, and not for every batch that is."""


class Accumulator(Desk):
    """The batches that are open, queued and under way, and the records that wait for a place.

    `nudge` is called when the sender has something new to look at. A batch is charged to the buffer as a whole when
    it begins, as Java's producer does, so that a record costs no bookkeeping. `hand_in` of the kernel takes a record
    whose way is straight, `append` any other.
    """

    topics: dict[str, TopicLanes]
    waiting: deque[Parked | ParkedBulk]
    kind: type[Delivery]

    def __init__(
        self,
        settings: ProducerSettings,
        clock: Clock,
        nudge: Callable[[], None],
        chance: random.Random,
    ) -> None:
        self.lock = threading.Lock()
        self.room = threading.Condition(self.lock)
        self.settings = settings
        self.clock = clock
        # The machine's own clock is read without a call in between.
        self.stamp_by(time.time_ns if clock is SYSTEM_CLOCK else lambda: clock.now_ms() * 1_000_000)
        self.deliver_as(Delivery)
        self._nudge = nudge
        self._chance = chance
        self.record_bytes_max = min(settings.max_request_size, settings.buffer_memory)
        largest = max(settings.max_request_size - HEADER_BYTES - REQUEST_OVERHEAD_BYTES, 1)
        self._limit = min(settings.batch_size, largest)
        self._bulk_limit = min(max(settings.batch_size, settings.bulk_batch_size), largest)
        self.topics = {}
        self.unknown: dict[str, deque[Parked | ParkedBulk]] = {}
        self.waiting = deque()
        self.waiting_bytes = 0
        self.free_bytes = settings.buffer_memory
        self._roomy_bytes = settings.buffer_memory // ROOMY_SHARE
        self.pending: dict[Batch, None] = {}
        self.ready: dict[Lane, None] = {}
        self.lingering: deque[tuple[float, Batch]] = deque()
        self.expiring: deque[Batch] = deque()
        self.room_wakers: list[Wake] = []
        self.flushing = 0
        # Threads that wait, how many, and for which partitions; and topics that were refused to them.
        self.blocked_threads = 0
        self.awaited: dict[str, list[int | None]] = {}
        self.refusals: dict[str, ClientError] = {}
        # Told of records that got no place in a batch and never will; for transactions.
        self.on_lost: Callable[[ClientError], None] | None = None

    # Records in.

    def append(
        self,
        topic: str,
        value: Payload | None,
        key: Payload | None,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
        callback: OnDelivery | None,
    ) -> Delivery | None:
        """A record into its batch; None when it must wait for its topic or for room. RecordTooLarge, TypeError."""
        held = self.topics.get(topic)
        if held is None or self.waiting:
            return None
        if timestamp is None:
            timestamp = self.clock.now_ms()
        if partition is None:
            lane = held.lane_of(key, value)
        elif 0 <= partition < len(held.lanes):
            lane = held.lanes[partition]
        else:
            return None
        batch = lane.open
        if batch is not None:
            assert batch.builder is not None
            index = batch.builder.count
            if batch.builder.append(timestamp, key, value, headers):
                return self._delivery(batch, index, timestamp, callback)
            sticky = lane is held.sticky and key is None and partition is None
            self.close_open(held, lane)
            if sticky and held.sticky is not lane:
                return self.append(topic, value, key, partition, timestamp, headers, callback)
        return self._first(lane, value, key, timestamp, headers, callback)

    def _first(
        self,
        lane: Lane,
        value: Payload | None,
        key: Payload | None,
        timestamp: int,
        headers: Headers,
        callback: OnDelivery | None,
    ) -> Delivery | None:
        """The first record of a new batch; None when there is no room for one."""
        size = size_of(key, value, headers)
        self.check_size(size, lane.name)
        charge = min(max(self._limit, size), self.settings.buffer_memory)
        if charge > self.free_bytes:
            self.all_due()
            return None
        builder = RecordsBuilder(self._limit)
        builder.append(timestamp, key, value, headers)
        batch = self.open_batch(lane, builder, charge)
        return self._delivery(batch, 0, timestamp, callback)

    def _delivery(self, batch: Batch, index: int, timestamp: int, callback: OnDelivery | None) -> Delivery:
        if callback is not None:
            batch.callbacks.append((index, timestamp, callback))
        return self.kind(batch, index, timestamp)

    def check_size(self, size: int, where: str) -> None:
        """RecordTooLarge when no request could carry a record of this size."""
        if size + HEADER_BYTES > self.record_bytes_max:
            raise RecordTooLarge(
                f"a record of {bytes_text(size)} is more than max_request_size or buffer_memory allows"
                f" ({bytes_text(self.record_bytes_max)})",
                where=where,
            )

    def open_batch(self, lane: Lane, builder: RecordsBuilder, charge: int) -> Batch:
        """Makes `builder`, which has at least one record, the open batch of a lane."""
        assert lane.open is None
        assert builder.count
        now_ms = self.clock.monotonic_ms()
        batch = Batch(lane, builder, charge, now_ms + self.settings.delivery_timeout_ms)
        self.free_bytes -= charge
        lane.open = batch
        self.pending[batch] = None
        self.expiring.append(batch)
        if self.flushing or not self.settings.linger_ms:
            batch.due = True
            self.ready[lane] = None
            self._nudge()
        else:
            self.lingering.append((now_ms + self.settings.linger_ms, batch))
            if len(self.lingering) == 1:
                self._nudge()
        return batch

    def bulk_builder(self, lane: Lane, estimate: int) -> tuple[RecordsBuilder, int] | None:
        """A builder for about `estimate` bytes of a lane without an open batch, and its charge; None without room."""
        assert lane.open is None
        limit = self._limit if estimate <= self._limit else min(estimate, self._bulk_limit)
        charge = min(limit, self.settings.buffer_memory)
        if charge > self.free_bytes:
            self.all_due()
            return None
        return RecordsBuilder(limit), charge

    def close_open(self, held: TopicLanes, lane: Lane) -> None:
        """No more records into the open batch of a lane; the next without a key may go to another."""
        if lane.open is not None:
            held.left(lane.open, self.settings.batch_size)
            lane.close_open()
            self.ready[lane] = None
            self._nudge()

    def close_all_open(self) -> None:
        """No more records into any batch that has begun."""
        for held in self.topics.values():
            for lane in held.lanes:
                self.close_open(held, lane)

    def left(self, batch: Batch) -> None:
        """The sender closed a batch."""
        self.topics[batch.lane.topic].left(batch, self.settings.batch_size)

    # Records that wait.

    def park(self, item: Parked | ParkedBulk) -> bool:
        """Puts aside what `append` would not take; True when its topic has to be asked for. BufferFull."""
        if self.waiting_bytes and self.waiting_bytes + item.size > self.settings.buffer_memory:
            raise BufferFull(
                f"{bytes_text(self.waiting_bytes)} wait for room in the buffer already; await deliveries, or"
                " wait_for_room(), before sending more",
                where=f"topic {item.topic!r}",
                retriable=True,
            )
        self.waiting_bytes += item.size
        if self.knows(item.topic, item.partition if isinstance(item, Parked) else item.bulk.partition):
            self.waiting.append(item)
            return False
        parked = self.unknown.setdefault(item.topic, deque())
        parked.append(item)
        return True

    def knows(self, topic: str, partition: int | None) -> bool:
        """Whether a record for it would wait for nothing but room."""
        held = self.topics.get(topic)
        return held is not None and (partition is None or 0 <= partition < len(held.lanes))

    def know(self, topic: str, leaders: Sequence[int | None]) -> TopicLanes:
        """A topic exists, and these lead its partitions."""
        held = self.topics.get(topic)
        if held is None:
            alone = self.settings.max_in_flight == 1
            held = TopicLanes(topic, self.settings.partitioner, self._chance, one_at_a_time=alone)
        held.learn(leaders)
        self.topics[topic] = held
        return held

    def learned(self, topic: str, failure: ClientError | None) -> None:
        """Threads that wait for a topic look again."""
        self.refusals.pop(topic, None)
        if self.blocked_threads:
            if failure is not None and topic in self.awaited:
                self.refusals[topic] = failure
            self.room.notify_all()

    def stopped_waiting(self, topic: str, partition: int | None) -> None:
        """A thread got what it waited for, or gave up."""
        self.blocked_threads -= 1
        awaited = self.awaited[topic]
        awaited.remove(partition)
        if not awaited:
            del self.awaited[topic]
            self.refusals.pop(topic, None)

    def unpark(self, topic: str) -> None:
        """Records that waited for their topic go on; they wait for room behind those who do already."""
        for item in self.unknown.pop(topic, ()):
            self.waiting.append(item)
        self.serve_waiting()

    def serve_waiting(self) -> None:
        """Gives room to those who wait, in turn."""
        while self.waiting:
            item = self.waiting.popleft()
            # `append` refuses while somebody waits, so the queue is empty in its eyes.
            others, self.waiting = self.waiting, deque()
            try:
                placed = self._place(item)
            except Exception as refused:
                # What was given cannot be sent, or the caller's partitioner failed: the others must not pay for it.
                words = f"the record cannot be sent: {refused!r}"
                self.give_up_on(item, refused if isinstance(refused, ClientError) else ClientError(words))
                placed = True
            self.waiting = others
            if not placed:
                self.waiting.appendleft(item)
                break
            self.waiting_bytes -= item.size
        self._wake_waiters()

    @property
    def roomy(self) -> bool:
        """Whether nobody waits and there is room for more than a batch or two."""
        return not self.waiting_bytes and self.free_bytes >= self._roomy_bytes

    def _wake_waiters(self) -> None:
        if self.room_wakers and self.roomy:
            self.wake_all()
        if self.blocked_threads and self.free_bytes >= self._roomy_bytes:
            self.room.notify_all()

    def wake_all(self) -> None:
        """Those who wait for room look again."""
        wakers, self.room_wakers = self.room_wakers, []
        for wake in wakers:
            wake()

    def _place(self, item: Parked | ParkedBulk) -> bool:
        if isinstance(item, ParkedBulk):
            before = item.bulk.placed_rows
            done = item.bulk.fill(self, item.delivery)
            if item.bulk.placed_rows > before:
                item.deadline_ms = self.clock.monotonic_ms() + self.settings.max_block_ms
            if done and self.on_lost is not None and item.delivery.failure is not None:
                self.on_lost(item.delivery.failure)
            return done
        delivery = self.append(
            item.topic, item.value, item.key, item.partition, item.timestamp, item.headers, item.callback
        )
        if delivery is None:
            return False
        item.placed(delivery)
        return True

    def give_up_on(self, item: Parked | ParkedBulk, failure: ClientError) -> None:
        """What waited and was taken out has failed."""
        item.fail(failure)
        if self.on_lost is not None:
            self.on_lost(failure)

    @property
    def parked(self) -> bool:
        """Whether anything waits for its place in a batch."""
        return bool(self.waiting or self.unknown)

    def take_parked(self) -> list[Parked | ParkedBulk]:
        """All that waits for its place; it is taken out."""
        items = self.overdue(float("inf"))
        for topic in list(self.unknown):
            items += self.give_up(topic)
        return items

    def overdue(self, now_ms: float) -> list[Parked | ParkedBulk]:
        """Those who waited for room as long as they may; they are taken out."""
        found = []
        while self.waiting and self.waiting[0].deadline_ms <= now_ms:
            item = self.waiting.popleft()
            self.waiting_bytes -= item.size
            found.append(item)
        if found:
            self._wake_waiters()
        return found

    def give_up(self, topic: str) -> list[Parked | ParkedBulk]:
        """Those who waited for a topic that did not come."""
        items = list(self.unknown.pop(topic, ()))
        self.waiting_bytes -= sum(item.size for item in items)
        self._wake_waiters()
        return items

    # Batches out.

    def mark_due(self, now_ms: float) -> None:
        """Open batches that have lingered long enough are ready."""
        lingering = self.lingering
        while lingering:
            due_ms, batch = lingering[0]
            if batch is batch.lane.open:
                if due_ms > now_ms:
                    break
                batch.due = True
                self.ready[batch.lane] = None
            lingering.popleft()

    def all_due(self) -> None:
        """Nothing lingers any more: somebody flushes, or the buffer is full."""
        for _, batch in self.lingering:
            if batch is batch.lane.open:
                batch.due = True
                self.ready[batch.lane] = None
        self.lingering.clear()
        self._nudge()

    def release(self, batch: Batch) -> None:
        """The memory of a batch that is settled and not on the wire."""
        self.free_bytes += batch.charge
        batch.charge = 0

    def next_wake_ms(self) -> float | None:
        """When the sender must look again though nothing happens."""
        expiring = self.expiring
        while expiring and (expiring[0].done or expiring[0].pieces):
            expiring.popleft()
        moments = [queue[0].deadline_ms for queue in (expiring, self.waiting) if queue]
        if self.lingering:
            moments.append(self.lingering[0][0])
        return min(moments, default=None)
