"""One client at work in a process of its own: `python -m bench.client_runs CLIENT WAY BOOTSTRAP TOPIC BYTES SECONDS`.

Prints what it moved as JSON. The clock and the CPU account start when the client is connected and has moved its first
record, so that imports and metadata are in no figure. Every producer has acks=all, idempotence, 5 ms of linger and
batches of 256 KiB; every consumer reads all partitions from the start without a group and checks checksums.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

BATCH_BYTES = 256 * 1024
LINGER_MS = 5
MANY = 10_000
"""Records of one call of a batch interface."""
PARTITIONS = 4


class Account:
    """Records, seconds and CPU seconds since `start`; `over` tells when the time is up."""

    def __init__(self, seconds: float) -> None:
        self.records = 0
        self._seconds = seconds
        self._start = self._cpu_s = 0.0

    def start(self) -> None:
        self.records = 0
        self._cpu_s, self._start = _cpu_s(), time.perf_counter()

    def over(self) -> bool:
        return time.perf_counter() - self._start > self._seconds

    def end(self) -> dict[str, float]:
        elapsed = time.perf_counter() - self._start
        return {"records": self.records, "seconds": elapsed, "cpu_s": _cpu_s() - self._cpu_s}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Run:
    """What a client is asked to do. `records` is how many there are to read."""

    def __init__(self, bootstrap: str, topic: str, record_bytes: int, seconds: float, records: int) -> None:
        self.bootstrap, self.topic, self.records = bootstrap, topic, records
        self.value = b"v" * record_bytes
        self.account = Account(seconds)

    def read_on(self) -> bool:
        return self.account.records < self.records and not self.account.over()


# --- Penstock ---


def _penstock_producer(run: Run) -> Any:
    from penstock import Producer

    return Producer(
        bootstrap_servers=run.bootstrap,
        acks="all",
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
        bulk_batch_size=BATCH_BYTES,
    )


async def penstock_send(run: Run) -> None:
    async with _penstock_producer(run) as producer:
        await producer.send(run.topic, run.value)
        run.account.start()
        while not run.account.over():
            for _ in range(1_000):
                producer.send(run.topic, run.value)
            await producer.wait_for_room()
            run.account.records += 1_000
        await producer.flush()
        _say(run)


async def penstock_send_batch(run: Run) -> None:
    values = [run.value] * MANY
    async with _penstock_producer(run) as producer:
        await producer.send_batch(run.topic, values[:1])
        run.account.start()
        while not run.account.over():
            producer.send_batch(run.topic, values)
            await producer.wait_for_room()
            run.account.records += MANY
        await producer.flush()
        _say(run)


async def penstock_send_arrow(run: Run) -> None:
    import pyarrow as pa

    table = pa.record_batch({"value": pa.array([run.value] * MANY, pa.binary())})
    async with _penstock_producer(run) as producer:
        await producer.send_arrow(run.topic, table.slice(0, 1))
        run.account.start()
        while not run.account.over():
            producer.send_arrow(run.topic, table)
            await producer.wait_for_room()
            run.account.records += MANY
        await producer.flush()
        _say(run)


def _penstock_consumer(run: Run) -> Any:
    from penstock import Consumer

    consumer = Consumer(bootstrap_servers=run.bootstrap, offset_reset="earliest")
    consumer.assign([(run.topic, partition) for partition in range(PARTITIONS)])
    return consumer


async def penstock_iterate(run: Run) -> None:
    async with _penstock_consumer(run) as consumer:
        await consumer.poll(1)
        run.account.start()
        count = 0
        async for record in consumer:
            assert record.value is not None
            count += 1
            if count % 1_000 == 0:
                run.account.records = count
                if not run.read_on():
                    break
        _say(run)


async def penstock_poll(run: Run) -> None:
    async with _penstock_consumer(run) as consumer:
        await consumer.poll(1)
        run.account.start()
        while run.read_on():
            run.account.records += len(await consumer.poll(MANY))
        _say(run)


async def penstock_poll_arrow(run: Run) -> None:
    async with _penstock_consumer(run) as consumer:
        await consumer.poll_arrow(1)
        run.account.start()
        while run.read_on():
            run.account.records += sum(batch.num_rows for batch in await consumer.poll_arrow(100_000))
        _say(run)


# --- confluent-kafka ---


def _confluent_producer(run: Run) -> Any:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": run.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(run.topic, run.value)
    producer.flush()
    return producer


def confluent_produce(run: Run) -> None:
    producer = _confluent_producer(run)
    run.account.start()
    while not run.account.over():
        for _ in range(1_000):
            try:
                producer.produce(run.topic, run.value)
            except BufferError:
                producer.poll(0.05)
                producer.produce(run.topic, run.value)
        producer.poll(0)
        run.account.records += 1_000
    producer.flush()
    _say(run)


def confluent_produce_batch(run: Run) -> None:
    producer = _confluent_producer(run)
    run.account.start()
    messages = [{"value": run.value} for _ in range(MANY)]
    while not run.account.over():
        left = messages
        while left:
            taken = producer.produce_batch(run.topic, left)
            run.account.records += taken
            # What found no room in the queue is marked with an error and given again.
            left = [{"value": run.value} for message in left if "_error" in message] if taken < len(left) else []
            producer.poll(0.01 if left else 0)
            if left:
                messages = [{"value": run.value} for _ in range(MANY)]
    producer.flush()
    _say(run)


def _confluent_consumer(run: Run) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": run.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "check.crcs": True,
            # As it comes it pauses for a second whenever 100,000 records wait, and would be measured pausing.
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 256 << 10,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(run.topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    assert consumer.poll(30) is not None
    return consumer


def confluent_poll(run: Run) -> None:
    consumer = _confluent_consumer(run)
    run.account.start()
    count = 0
    while True:
        message = consumer.poll(1)
        if message is not None:
            assert message.value() is not None
            count += 1
        if message is None or count % 1_000 == 0:
            run.account.records = count
            if not run.read_on():
                break
    _say(run)
    consumer.close()


def confluent_consume(run: Run) -> None:
    consumer = _confluent_consumer(run)
    run.account.start()
    while run.read_on():
        # Touched, for a message makes its bytes when it is asked for them, and others have made them already.
        run.account.records += sum(message.value() is not None for message in consumer.consume(MANY, 0.1))
    _say(run)
    consumer.close()


# --- kafka-python ---


def kafka_python_send(run: Run) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=run.bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
    )
    producer.send(run.topic, run.value).get(30)
    run.account.start()
    while not run.account.over():
        for _ in range(1_000):
            producer.send(run.topic, run.value)
        run.account.records += 1_000
    producer.flush()
    _say(run)
    producer.close()


def _kafka_python_consumer(run: Run) -> Any:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=run.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, group_id=None
    )
    consumer.assign([TopicPartition(run.topic, partition) for partition in range(PARTITIONS)])
    while not consumer.poll(1_000, max_records=1):
        pass
    return consumer


def kafka_python_iterate(run: Run) -> None:
    consumer = _kafka_python_consumer(run)
    run.account.start()
    for count, _message in enumerate(consumer, start=1):
        if count % 1_000 == 0:
            run.account.records = count
            if not run.read_on():
                break
    _say(run)
    consumer.close()


def kafka_python_poll(run: Run) -> None:
    consumer = _kafka_python_consumer(run)
    run.account.start()
    while run.read_on():
        run.account.records += sum(len(found) for found in consumer.poll(1_000, max_records=MANY).values())
    _say(run)
    consumer.close()


# --- aiokafka ---


def _aiokafka_producer(run: Run) -> Any:
    from aiokafka import AIOKafkaProducer

    return AIOKafkaProducer(
        bootstrap_servers=run.bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        max_batch_size=BATCH_BYTES,
    )


async def aiokafka_send(run: Run) -> None:
    producer = _aiokafka_producer(run)
    await producer.start()
    await producer.send_and_wait(run.topic, run.value)
    run.account.start()
    while not run.account.over():
        for _ in range(1_000):
            await producer.send(run.topic, run.value)
        run.account.records += 1_000
    await producer.flush()
    _say(run)
    await producer.stop()


async def aiokafka_send_batch(run: Run) -> None:
    producer = _aiokafka_producer(run)
    await producer.start()
    await producer.send_and_wait(run.topic, run.value)
    run.account.start()
    partition = 0
    while not run.account.over():
        batch = producer.create_batch()
        count = 0
        while batch.append(key=None, value=run.value, timestamp=None) is not None:
            count += 1
        await producer.send_batch(batch, run.topic, partition=partition)
        partition = (partition + 1) % PARTITIONS
        run.account.records += count
    await producer.flush()
    _say(run)
    await producer.stop()


async def _aiokafka_consumer(run: Run) -> Any:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=run.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, group_id=None
    )
    await consumer.start()
    consumer.assign([TopicPartition(run.topic, partition) for partition in range(PARTITIONS)])
    await consumer.getone()
    return consumer


async def aiokafka_iterate(run: Run) -> None:
    consumer = await _aiokafka_consumer(run)
    run.account.start()
    count = 0
    async for _message in consumer:
        count += 1
        if count % 1_000 == 0:
            run.account.records = count
            if not run.read_on():
                break
    _say(run)
    await consumer.stop()


async def aiokafka_getmany(run: Run) -> None:
    consumer = await _aiokafka_consumer(run)
    run.account.start()
    while run.read_on():
        found = await consumer.getmany(timeout_ms=1_000, max_records=MANY)
        run.account.records += sum(len(messages) for messages in found.values())
    _say(run)
    await consumer.stop()


def _say(run: Run) -> None:
    print(json.dumps(run.account.end()), flush=True)


Way = Callable[[Run], None] | Callable[[Run], Coroutine[Any, Any, None]]

PRODUCE: dict[str, dict[str, Way]] = {
    "one by one": {
        "penstock": penstock_send,
        "confluent": confluent_produce,
        "kafka-python": kafka_python_send,
        "aiokafka": aiokafka_send,
    },
    "in batches": {
        "penstock": penstock_send_batch,
        "confluent": confluent_produce_batch,
        "aiokafka": aiokafka_send_batch,
    },
    "Arrow": {"penstock": penstock_send_arrow},
}
CONSUME: dict[str, dict[str, Way]] = {
    "one by one": {
        "penstock": penstock_iterate,
        "confluent": confluent_poll,
        "kafka-python": kafka_python_iterate,
        "aiokafka": aiokafka_iterate,
    },
    "in batches": {
        "penstock": penstock_poll,
        "confluent": confluent_consume,
        "kafka-python": kafka_python_poll,
        "aiokafka": aiokafka_getmany,
    },
    "Arrow": {"penstock": penstock_poll_arrow},
}


def main() -> None:
    direction, client, way, bootstrap, topic, record_bytes, seconds, records = sys.argv[1:]
    work = {"produce": PRODUCE, "consume": CONSUME}[direction][way][client]
    run = Run(bootstrap, topic, int(record_bytes), float(seconds), int(records))
    if not asyncio.iscoroutinefunction(work):
        work(run)
        return
    # The loop that Penstock brings is given to both clients that need one.
    import uvloop

    uvloop.run(work(run))


if __name__ == "__main__":
    main()
