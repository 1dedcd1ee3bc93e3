"""A broker in this process, records in it, and consumers of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from confluent_kafka import Producer as ConfluentProducer

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer import Consumer
from penstock.kernels import ConsumerRecord
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_records import DeleteRecordsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.testing import EmbeddedBroker
from tests.patience import within

T = TypeVar("T")

PATIENCE_S = 20


def put(
    node: EmbeddedBroker,
    topic: str,
    values: Iterable[bytes],
    *,
    partition: int = 0,
    compression: str = "none",
    timestamps: Iterable[int] | None = None,
) -> None:
    """Records by another client."""
    producer = ConfluentProducer(
        {
            "bootstrap.servers": node.bootstrap_servers,
            "compression.type": compression,
            "log_level": 0,
            "linger.ms": 5,
            "batch.size": 16_384,
        }
    )
    failures: list[object] = []

    def told(failure: object, _: object) -> None:
        failures.append(failure)

    times = iter(timestamps) if timestamps is not None else None
    for value in values:
        said = {} if times is None else {"timestamp": next(times)}
        producer.produce(topic, value, key=b"k", partition=partition, on_delivery=told, **said)
    assert producer.flush(within(PATIENCE_S)) == 0
    assert set(failures) <= {None}


def numbers(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


async def ask(node: EmbeddedBroker, request: object) -> Any:
    async with ClusterView(node.bootstrap_servers) as view:
        return await view.ask(1, request)


async def create(node: EmbeddedBroker, topic: str, partitions: int = 1) -> None:
    made = CreateTopicsRequest
    wanted = made.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    reply = await ask(node, made(topics=[wanted], timeout_ms=10_000))
    assert [result.error_code for result in reply.topics] == [0]


async def delete(node: EmbeddedBroker, topic: str) -> None:
    state = DeleteTopicsRequest.DeleteTopicState(name=topic)
    reply = await ask(node, DeleteTopicsRequest(topics=[state], topic_names=[topic], timeout_ms=10_000))
    assert [result.error_code for result in reply.responses] == [0]


async def trim(node: EmbeddedBroker, topic: str, offset: int) -> None:
    """Drops the records before `offset`."""
    made = DeleteRecordsRequest
    partition = made.DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [made.DeleteRecordsTopic(name=topic, partitions=[partition])]
    reply = await ask(node, made(topics=topics, timeout_ms=10_000))
    assert [found.error_code for topic in reply.topics for found in topic.partitions] == [0]


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Exactly `count` records, or a failure that says how many there were."""
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(within(PATIENCE_S)):
        while len(found) < count:
            found += await consumer.poll(max_records=count - len(found))
    return found


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    return [record.value for record in await read(consumer, count)]


async def until(true: Callable[[], object], *consumers: Consumer) -> None:
    """Polls the consumers, dropping what they give, until something is so."""
    async with asyncio.timeout(within(PATIENCE_S)):
        while not true():
            for consumer in consumers:
                await consumer.poll(timeout_ms=20)
            if not consumers:
                await asyncio.sleep(0.01)


def run(work: Awaitable[T]) -> T:
    """Runs a test's coroutine; whatever task is left afterwards fails it."""

    async def main() -> T:
        result = await work
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == [], left
        return result

    return asyncio.run(main())
