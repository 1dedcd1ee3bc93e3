"""The foreign client: librdkafka (confluent-kafka), which knows nothing of Penstock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.checks import Read
from demo.orders import order

TOPIC = "orders"
PARTITIONS = 6
PROGRESS_EVERY = 10_000
SILENCE_S = 60.0
# librdkafka tells of every broker that goes away; here one is killed on purpose.
QUIET = {"log_level": 0, "log.connection.close": False}


class ClientFailed(Exception):
    """Records were not taken, or do not come back."""


def create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def produce(address: str, count: int, sent: Callable[[int, bytes], None], progress: Callable[[int], None]) -> None:
    """Sends `count` orders, keyed by customer, and returns when every one of them is acknowledged."""
    failures: list[object] = []
    producer = Producer({
        "bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5, "compression.type": "lz4",
        "queue.buffering.max.messages": 200_000, **QUIET,
    })  # fmt: skip

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):
        customer, value = order(number)
        sent(customer, value)
        while True:
            try:
                producer.produce(TOPIC, value, key=b"%d" % customer, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if number % PROGRESS_EVERY == 0:
            producer.poll(0)
            progress(number)
    producer.flush()
    progress(count)
    if failures:
        raise ClientFailed(f"{len(failures)} records were not delivered: {failures[0]}")


def consume(address: str) -> Iterator[Read]:
    """Everything the topic holds, by assignment, each partition up to the end it has now."""
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": "demo", "enable.auto.commit": False, "auto.offset.reset": "error",
        "fetch.message.max.bytes": 4 << 20, **QUIET,
    })  # fmt: skip
    try:
        partitions = [TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)]
        ends = {each.partition: consumer.get_watermark_offsets(each, timeout=30)[1] for each in partitions}
        unfinished = {partition for partition, end in ends.items() if end}
        consumer.assign(partitions)
        heard = time.monotonic()
        while unfinished:
            records = consumer.consume(10_000, timeout=1.0)
            if records:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE_S:
                raise ClientFailed(f"partitions {sorted(unfinished)} fell silent before their end")
            for record in records:
                if record.error():
                    raise KafkaException(record.error())
                partition, offset = record.partition(), record.offset()
                yield Read(partition, offset, int(record.key()), record.value())
                if offset + 1 >= ends[partition]:
                    unfinished.discard(partition)
    finally:
        consumer.close()
