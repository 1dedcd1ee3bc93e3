"""Foreign clients in transactions: what they commit is read whole, what they abort never, and the older one is fenced.

All of them speak the classic protocol: they register partitions, and keep their epoch from one transaction to the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from penstock.testing import EmbeddedBroker, broker, cluster
from tests.compat.wire import create_topic
from tests.patience import within

PATIENCE_S = 60
PARTITIONS = 3
QUIET_POLLS = 6
"""Polls without a record after which a topic counts as read; the first few of them form the group."""


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


def read_confluent(bootstrap: str, topic: str, isolation: str, login: dict[str, Any] | None = None) -> list[bytes]:
    consumer = Consumer(
        {
            **(login or {}),
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


# -- consume, transform, produce


def copy_confluent(bootstrap: str, source: str, target: str, group: str, *, commit: bool, limit: int) -> int:
    """One transaction that copies what comes next of `source`, at most `limit` records; how many it were."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "isolation.level": "read_committed", "enable.partition.eof": True,
        }
    )  # fmt: skip
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group, "log_level": 0})
    producer.init_transactions(within(PATIENCE_S))
    consumer.subscribe([source])
    producer.begin_transaction()
    copied, ended = 0, set()
    try:
        while copied < limit and len(ended) < PARTITIONS:
            message = consumer.poll(within(PATIENCE_S))
            assert message is not None, f"{source} does not end"
            if message.error():
                ended.add(message.partition())
                continue
            producer.produce(target, message.value(), partition=message.partition())
            copied += 1
        assigned = consumer.assignment()
        producer.send_offsets_to_transaction(
            consumer.position(assigned), consumer.consumer_group_metadata(), within(PATIENCE_S)
        )
        if commit:
            producer.commit_transaction(within(PATIENCE_S))
        else:
            producer.abort_transaction(within(PATIENCE_S))
    finally:
        consumer.close()
    return copied


def copy_kafka_python(bootstrap: str, source: str, target: str, group: str, *, commit: bool, limit: int) -> int:
    consumer = KafkaConsumer(
        source, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
        enable_auto_commit=False, isolation_level="read_committed", max_poll_records=limit,
    )  # fmt: skip
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=group, max_block_ms=within(PATIENCE_S) * 1_000
    )
    producer.init_transactions()
    producer.begin_transaction()
    copied, quiet = 0, 0
    try:
        while copied < limit and quiet < QUIET_POLLS:
            found = consumer.poll(timeout_ms=500, max_records=limit - copied)
            quiet = 0 if found else quiet + 1
            for record in (record for records in found.values() for record in records):
                producer.send(target, record.value, partition=record.partition)
                copied += 1
        offsets = {place: OffsetAndMetadata(consumer.position(place), "", -1) for place in consumer.assignment()}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    finally:
        producer.close(timeout=within(5))
        consumer.close(autocommit=False)
    return copied


def copy_aio(bootstrap: str, source: str, target: str, group: str, *, commit: bool, limit: int) -> int:
    async def steps() -> int:
        consumer = AIOKafkaConsumer(
            source, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
            enable_auto_commit=False, isolation_level="read_committed",
        )  # fmt: skip
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=group)
        await consumer.start()
        await producer.start()
        copied, quiet = 0, 0
        try:
            await producer.begin_transaction()
            while copied < limit and quiet < QUIET_POLLS:
                found = await consumer.getmany(timeout_ms=500, max_records=limit - copied)
                quiet = 0 if found else quiet + 1
                for record in (record for records in found.values() for record in records):
                    await producer.send(target, record.value, partition=record.partition)
                    copied += 1
            offsets = {place: await consumer.position(place) for place in consumer.assignment()}
            await producer.send_offsets_to_transaction(offsets, group)
            await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()
            await consumer.stop()
        return copied

    return asyncio.run(asyncio.wait_for(steps(), within(PATIENCE_S)))


@pytest.mark.parametrize("copy", [copy_confluent, copy_kafka_python, copy_aio])
def test_every_input_is_in_the_output_once(bootstrap: str, copy: Callable[..., int]) -> None:
    source, target = f"{copy.__name__}-in", f"{copy.__name__}-out"
    for topic in (source, target):
        create_topic(bootstrap, topic, PARTITIONS)
    values = [b"%d" % number for number in range(30)]
    filler = Confluent(bootstrap, f"{copy.__name__}-fills")
    filler.write(source, [b"never"] * 3, commit=False)
    filler.write(source, values, commit=True)
    filler.close()
    group = f"{copy.__name__}-group"
    assert copy(bootstrap, source, target, group, commit=True, limit=7) == 7
    assert copy(bootstrap, source, target, group, commit=False, limit=9) == 9
    assert copy(bootstrap, source, target, group, commit=True, limit=100) == 23
    assert read_confluent(bootstrap, target, "read_committed") == sorted(values)


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


def test_nodes_that_log_in_to_each_other_write_markers_and_ask_coordinators() -> None:
    """Three nodes with TLS, logins and an authorizer that denies by default; the partitions are led by all of them."""
    with cluster(nodes=3, secure=True) as running:
        login = {**running.librdkafka_settings, "log_level": 0}
        admin = AdminClient(login)
        (made,) = admin.create_topics([NewTopic("orders", PARTITIONS, 3)]).values()
        made.result(within(PATIENCE_S))
        producer = Producer({**login, "transactional.id": "copier"})
        producer.init_transactions(within(PATIENCE_S))
        for value, commit in ((b"kept", True), (b"lost", False), (b"kept", True)):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce("orders", value, partition=partition)
            assert producer.flush(within(PATIENCE_S)) == 0
            if commit:
                producer.commit_transaction(within(PATIENCE_S))
            else:
                producer.abort_transaction(within(PATIENCE_S))
        values = read_confluent(running.bootstrap_servers, "orders", "read_committed", login)
        assert values == [b"kept"] * 2 * PARTITIONS
