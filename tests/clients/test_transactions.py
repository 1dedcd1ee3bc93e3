"""Foreign clients in transactions: what they commit is read whole, what they abort never, and the older one is fenced.

All of them speak the classic protocol: they register partitions, and keep their epoch from one transaction to the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from penstock.testing import EmbeddedBroker, broker
from tests.compat.wire import create_topic
from tests.patience import within

PATIENCE_S = 60
PARTITIONS = 3


class Transactional(Protocol):
    """One client library's producer with a transactional id."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        """Begins by fencing whoever has the id."""

    def write(self, topic: str, values: Sequence[bytes], *, commit: bool) -> None:
        """One transaction over all partitions of a topic; raises when it could not be ended so."""

    def begin(self, topic: str, values: Sequence[bytes]) -> None:
        """The same, without its end."""

    def end(self, *, commit: bool) -> None: ...
    def close(self) -> None: ...


class Confluent:
    """librdkafka."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(within(PATIENCE_S))

    def begin(self, topic: str, values: Sequence[bytes]) -> None:
        self._producer.begin_transaction()
        for number, value in enumerate(values):
            self._producer.produce(topic, value, partition=number % PARTITIONS)
        assert self._producer.flush(within(PATIENCE_S)) == 0

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction(within(PATIENCE_S))
        else:
            self._producer.abort_transaction(within(PATIENCE_S))

    def write(self, topic: str, values: Sequence[bytes], *, commit: bool) -> None:
        self.begin(topic, values)
        self.end(commit=commit)

    def close(self) -> None:
        self._producer.purge()


class KafkaPython(Confluent):
    """kafka-python."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._client = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=within(PATIENCE_S) * 1_000,
        )
        self._client.init_transactions()

    def begin(self, topic: str, values: Sequence[bytes]) -> None:
        self._client.begin_transaction()
        sent = [self._client.send(topic, value, partition=number % PARTITIONS) for number, value in enumerate(values)]
        self._client.flush()
        for each in sent:
            each.get(within(PATIENCE_S))

    def end(self, *, commit: bool) -> None:
        if commit:
            self._client.commit_transaction()
        else:
            self._client.abort_transaction()

    def close(self) -> None:
        self._client.close(timeout=within(5))


class Aio(Confluent):
    """aiokafka, on a loop of its own."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._loop = asyncio.new_event_loop()

        async def started() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            )
            async with asyncio.timeout(within(PATIENCE_S)):
                await producer.start()
            return producer

        self._aio: AIOKafkaProducer = self._loop.run_until_complete(started())

    def begin(self, topic: str, values: Sequence[bytes]) -> None:
        async def steps() -> None:
            await self._aio.begin_transaction()
            sent = [
                await self._aio.send(topic, value, partition=number % PARTITIONS) for number, value in enumerate(values)
            ]
            await asyncio.gather(*sent)

        self._run(steps())

    def end(self, *, commit: bool) -> None:
        self._run(self._aio.commit_transaction() if commit else self._aio.abort_transaction())

    def close(self) -> None:
        with suppress(Exception):
            self._run(self._aio.stop())
        self._loop.close()

    def _run(self, work: Any) -> None:
        self._loop.run_until_complete(asyncio.wait_for(work, within(PATIENCE_S)))


LIBRARIES: dict[str, type[Confluent]] = {"confluent": Confluent, "kafka-python": KafkaPython, "aiokafka": Aio}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> type[Confluent]:
    return LIBRARIES[request.param]


def read_confluent(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-{isolation}",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    from confluent_kafka import TopicPartition as Place

    consumer.assign([Place(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    values: list[bytes] = []
    try:
        while len(ended) < PARTITIONS:
            message = consumer.poll(within(PATIENCE_S))
            assert message is not None, f"{topic} does not end"
            if message.error():
                ended.add(message.partition())
            else:
                values.append(message.value())
    finally:
        consumer.close()
    return sorted(values)


def read_kafka_python(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        group_id=None,
        consumer_timeout_ms=2_000,
    )
    consumer.assign([TopicPartition(topic, index) for index in range(PARTITIONS)])
    try:
        return sorted(record.value for record in consumer)
    finally:
        consumer.close()


@pytest.mark.parametrize("read", [read_confluent, read_kafka_python])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    bootstrap: str, library: type[Confluent], read: Callable[[str, str, str], list[bytes]]
) -> None:
    topic = f"transactions-{library.__name__.lower()}-{read.__name__}"
    create_topic(bootstrap, topic, PARTITIONS)
    producer = library(bootstrap, topic)
    rounds = [(b"first", True), (b"second", False), (b"third", True), (b"fourth", False)]
    for name, commit in rounds:
        producer.write(topic, [b"%s-%d" % (name, number) for number in range(6)], commit=commit)
    producer.close()
    kept = sorted(b"%s-%d" % (name, number) for name, commit in rounds if commit for number in range(6))
    every = sorted(b"%s-%d" % (name, number) for name, _ in rounds for number in range(6))
    assert read(bootstrap, topic, "read_committed") == kept
    assert read(bootstrap, topic, "read_uncommitted") == every


def test_the_next_producer_with_an_id_ends_the_one_before(bootstrap: str, library: type[Confluent]) -> None:
    topic = f"fenced-{library.__name__.lower()}"
    create_topic(bootstrap, topic, PARTITIONS)
    former = library(bootstrap, topic)
    former.begin(topic, [b"lost"] * PARTITIONS)
    newer = library(bootstrap, topic)
    newer.write(topic, [b"kept"] * PARTITIONS, commit=True)
    with pytest.raises(Exception, match=r"(?i)fenced|epoch|_FENCED"):
        former.end(commit=True)
    former.close()
    newer.close()
    assert read_confluent(bootstrap, topic, "read_committed") == [b"kept"] * PARTITIONS


# -- in a test's own process, where time moves


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": str(PARTITIONS)}) as running:
        yield running


def test_a_transaction_that_runs_out_of_time_is_aborted(embedded: EmbeddedBroker, library: type[Confluent]) -> None:
    topic = f"late-{library.__name__.lower()}"
    create_topic(embedded.bootstrap_servers, topic, PARTITIONS)
    late = library(embedded.bootstrap_servers, topic, timeout_ms=60_000)
    late.begin(topic, [b"late"] * PARTITIONS)
    embedded.advance(minutes=2)
    other = library(embedded.bootstrap_servers, f"{topic}-other")
    other.write(topic, [b"in time"] * PARTITIONS, commit=True)
    assert read_confluent(embedded.bootstrap_servers, topic, "read_committed") == [b"in time"] * PARTITIONS
    with pytest.raises(Exception, match=r"(?i)fenced|epoch|_FENCED"):
        late.end(commit=True)
    late.close()
    other.close()


def test_a_refusal_that_is_ordered_reaches_the_producer(embedded: EmbeddedBroker) -> None:
    create_topic(embedded.bootstrap_servers, "ordered", PARTITIONS)
    producer = Confluent(embedded.bootstrap_servers, "ordered")
    producer.begin("ordered", [b"x"] * PARTITIONS)
    embedded.fail(api="EndTxn", code="INVALID_TXN_STATE")
    with pytest.raises(KafkaException):
        producer.end(commit=True)
    producer.close()
