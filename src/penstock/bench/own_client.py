"""Jobs of the client library, as an application would use it: `send_batch`, `send`, `poll`."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import uvloop

from penstock.bench.jobs import Job, Moved, Start
from penstock.bench.latency import Pace
from penstock.bench.raw import payload
from penstock.bench.settings import STAMP_BYTES
from penstock.client.consumer import Consumer
from penstock.client.errors import BufferFull, ClientError, TimedOutWaiting
from penstock.client.producer import Producer
from penstock.client.producer.delivery import BulkDelivery, Report
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition

CALL_RECORDS_MAX, CALL_BYTES_MAX = 1_000, 4_000_000
"""What one call of `send_batch` is given at most."""
POLL_RECORDS = 10_000
FIRST_RECORD_S = 30.0
ARRIVAL_S = 30.0
"""How long after the last record was sent a reader may wait for it."""

_STAMP = struct.Struct(">8sd")


def _on_a_loop(work: Callable[[Job, Start], Coroutine[Any, Any, Moved]]) -> Callable[[Job, Start], Moved]:
    def run(job: Job, start: Start) -> Moved:
        return uvloop.run(work(job, start))

    return run


class _Account:
    """Time and processor time since it was made."""

    def __init__(self) -> None:
        self._cpu_s, self.began = time.process_time(), time.perf_counter()

    def elapsed_s(self) -> float:
        return time.perf_counter() - self.began

    def moved(self, records: int, value_bytes: int, latencies_ms: array[float] | None = None) -> Moved:
        used_s = time.process_time() - self._cpu_s
        return Moved(self.elapsed_s(), records, value_bytes, used_s, latencies_ms or array("d"))


@_on_a_loop
async def produce(job: Job, start: Start) -> Moved:
    """As many records as are taken; the clock stops when all that were sent are acknowledged."""
    count = max(1, min(CALL_RECORDS_MAX, CALL_BYTES_MAX // job.record_bytes))
    values = [payload(job.record_bytes, seed) for seed in range(count)]
    under_way: deque[BulkDelivery] = deque()
    records = 0
    async with Producer(**job.producer) as producer:
        await producer.send_batch(job.topic, values[:1])
        start()
        account = _Account()
        while account.elapsed_s() < job.seconds:
            under_way.append(producer.send_batch(job.topic, values))
            records += count
            await producer.wait_for_room()
            while under_way and under_way[0].done():
                under_way.popleft().outcome()
        for delivery in under_way:
            await delivery
        return account.moved(records, records * job.record_bytes)


@_on_a_loop
async def fill(job: Job, start: Start) -> Moved:
    """About `fill_bytes` of values, where brokers are reached with TLS or a login."""
    count = max(1, min(CALL_RECORDS_MAX, CALL_BYTES_MAX // job.record_bytes))
    values = [payload(job.record_bytes, seed) for seed in range(count)]
    calls = max(1, job.fill_bytes // (count * job.record_bytes))
    async with Producer(**job.producer) as producer:
        start()
        account = _Account()
        under_way = []
        for _ in range(calls):
            under_way.append(producer.send_batch(job.topic, values))
            await producer.wait_for_room()
        for delivery in under_way:
            await delivery
        return account.moved(calls * count, calls * count * job.record_bytes)


class _Deliveries:
    """How late records were acknowledged, and why one was not."""

    def __init__(self) -> None:
        self.latencies_ms = array("d")
        self.failure: ClientError | None = None

    def note(self, due: float, _report: Report | None, failure: ClientError | None) -> None:
        if failure is not None:
            self.failure = self.failure or failure
        else:
            self.latencies_ms.append((time.perf_counter() - due) * 1000)

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure


async def _keep_pace(pace: Pace, began: float, send: Callable[[int, float], None], producer: Producer) -> None:
    """Calls `send` with a number and its due time for everything as it gets due, however late it has become."""
    sent = 0
    while sent < pace.total:
        for number in range(sent, pace.due_by(time.perf_counter() - began)):
            try:
                send(number, began + pace.due_s(number))
            except BufferFull:
                break
            sent = number + 1
        if sent == pace.total:
            return
        left_s = began + pace.due_s(sent) - time.perf_counter()
        if left_s < 0:
            await producer.wait_for_room()
        else:
            # A timer has a grain of a millisecond, so the last one is spent looking at the clock.
            await asyncio.sleep(left_s - 0.001 if left_s > 0.002 else 0)


@_on_a_loop
async def produce_at_rate(job: Job, start: Start) -> Moved:
    """Records one by one at a fixed rate; each counts from when it was due to its acknowledgement."""
    assert job.rate_per_s is not None, "a rate was asked for"
    value = payload(job.record_bytes, 1)
    deliveries = _Deliveries()
    async with Producer(**job.producer) as producer:
        await producer.send(job.topic, value)
        start()

        def send(_number: int, due: float) -> None:
            producer.send(job.topic, value, on_delivery=partial(deliveries.note, due))

        account = _Account()
        await _keep_pace(Pace(job.rate_per_s, job.seconds), account.began, send, producer)
        await producer.flush()
        deliveries.check()
        records = len(deliveries.latencies_ms)
        return account.moved(records, records * job.record_bytes, deliveries.latencies_ms)


@_on_a_loop
async def consume(job: Job, start: Start) -> Moved:
    """Reads its partitions from the start to the end, and again, until the time is over."""
    assigned = [(job.topic, partition) for partition in job.partitions]
    # At the end a broker would hold a fetch back for more to come, and there is none.
    keywords = {"offset_reset": "earliest", "fetch_max_wait_ms": 1, **job.consumer}
    async with Consumer(**keywords) as consumer:
        consumer.assign(assigned)
        await _first(consumer, job)
        starts, ends = await consumer.beginning_offsets(*assigned), await consumer.end_offsets(*assigned)
        there = sum(ends.values()) - sum(starts.values())
        _rewind(consumer, starts)
        start()
        account = _Account()
        records = value_bytes = seen = 0
        while account.elapsed_s() < job.seconds:
            found = await consumer.poll(POLL_RECORDS, timeout_ms=200)
            records += len(found)
            seen += len(found)
            value_bytes += sum(len(record.value or b"") for record in found)
            # Of a compacted topic fewer records are there than offsets; then an empty poll tells the end.
            if seen >= there or not found:
                _rewind(consumer, starts)
                seen = 0
        return account.moved(records, value_bytes)


def _rewind(consumer: Consumer, starts: Mapping[TopicPartition, int]) -> None:
    for partition, offset in starts.items():
        consumer.seek(partition, offset)


async def _first(consumer: Consumer, job: Job) -> None:
    if not await consumer.poll(1, timeout_ms=FIRST_RECORD_S * 1000):
        raise TimedOutWaiting(f"no record came within {FIRST_RECORD_S:.0f} s", where=job.topic)


def _due_times(records: Sequence[ConsumerRecord], ours: bytes) -> Iterator[float]:
    """Of a topic that others write to as well, only what is ours counts."""
    for record in records:
        value = record.value
        if value is not None and len(value) >= STAMP_BYTES:
            whose, due = _STAMP.unpack_from(value)
            if whose == ours:
                yield due


@_on_a_loop
async def end_to_end(job: Job, start: Start) -> Moved:
    """Records at a fixed rate, read by the same process: each counts from when it was due until it was read."""
    assert job.rate_per_s is not None, "a rate was asked for"
    padding = payload(max(job.record_bytes - STAMP_BYTES, 0), 1)
    ours, latencies_ms = os.urandom(8), array("d")
    pace = Pace(job.rate_per_s, job.seconds)
    deliveries = _Deliveries()

    async with Producer(**job.producer) as producer, Consumer(**{**job.consumer, "group_id": None}) as consumer:
        consumer.assign([(job.topic, partition) for partition in job.partitions])
        consumer.seek_to_end()
        for partition in job.partitions:
            await consumer.position((job.topic, partition))
        await producer.send(job.topic, _STAMP.pack(bytes(8), 0.0) + padding, partition=job.partitions[0])
        await _first(consumer, job)

        def send(number: int, due: float) -> None:
            partition = job.partitions[number % len(job.partitions)]
            producer.send(job.topic, _STAMP.pack(ours, due) + padding, partition=partition, on_delivery=failed)

        def failed(_report: Report | None, failure: ClientError | None) -> None:
            deliveries.failure = deliveries.failure or failure

        async def read() -> None:
            while len(latencies_ms) < pace.total:
                found = await consumer.poll(POLL_RECORDS)
                now = time.perf_counter()
                latencies_ms.extend((now - due) * 1000 for due in _due_times(found, ours))

        start()
        account = _Account()
        reading = asyncio.create_task(read())
        try:
            await _keep_pace(pace, account.began, send, producer)
            await producer.flush()
            deliveries.check()
            async with asyncio.timeout(ARRIVAL_S):
                await reading
        except TimeoutError:
            missing = pace.total - len(latencies_ms)
            raise TimedOutWaiting(
                f"{missing} of {pace.total} records were not there {ARRIVAL_S:.0f} s later", where=job.topic
            ) from None
        finally:
            reading.cancel()
        return account.moved(pace.total, pace.total * job.record_bytes, latencies_ms)
