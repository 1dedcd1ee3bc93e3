"""Penstock's own client in transactions: one suite for Apache Kafka and for our node, in both protocols.

The level of `transaction.version` decides which protocol the client speaks.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import (
    Admin,
    Consumer,
    GroupMetadata,
    PreparedTransaction,
    Producer,
    TransactionAbortable,
    TransactionFenced,
    blocking,
)
from penstock.client.errors import ClientError, RecordTooLarge, UnknownTopic
from penstock.client.producer.transactions.reactions import Api
from penstock.client.spans import Piece, Span, SpanEnd, SpanReader
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.model.ids import TopicPartition
from tests.compat.apache.node import ApacheKafka
from tests.compat.cluster import ApacheCluster, Cluster, PenstockCluster
from tests.compat.conftest import NodeFactory
from tests.compat.judged import Penstock
from tests.compat.node import Node
from tests.docs.pages import ROOT, blocks
from tests.patience import wait_for, within

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

CLASSIC, BUMPING = 0, 2
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "300",
}
SOON = {"retry_backoff_ms": 20, "retry_backoff_max_ms": 200}

_numbers = itertools.count(1)


def set_level(bootstrap: str, level: int) -> None:
    """Raises or lowers `transaction.version`, and waits until brokers tell it."""
    with blocking.Admin(bootstrap_servers=bootstrap) as admin:

        def told() -> int:
            return next(found.finalized or 0 for found in admin.features() if found.name == TRANSACTION_VERSION)

        now = told()
        if now != level:
            admin.update_features({TRANSACTION_VERSION: level}, downgrade="safe" if now > level else None)
            wait_for(f"level {level}", lambda: told() == level or None, timeout_s=30)


@pytest.fixture(scope="module", params=["apache", "penstock"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    kind = {"apache": ApacheKafka, "penstock": Penstock}[request.param]
    with kind(tmp_path_factory.mktemp(request.param), properties=QUICK) as started:
        yield started


@pytest.fixture(scope="module", params=[BUMPING, CLASSIC], ids=["bumping", "classic"])
def level(request: pytest.FixtureRequest, node: Node) -> int:
    set_level(node.bootstrap, request.param)
    chosen: int = request.param
    return chosen


@pytest.fixture
def bootstrap(node: Node, level: int) -> str:
    return node.bootstrap


@pytest.fixture
def txn() -> str:
    """A transactional id that no other test uses."""
    return f"txn-{next(_numbers)}"


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A topic of two partitions that no other test uses."""
    name = f"topic-{next(_numbers)}"
    with blocking.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(name, partitions=2)
    return name


async def decided(bootstrap: str, topic: str, partitions: int = 2) -> None:
    """Returns when no transaction is open in the topic."""
    tps = [TopicPartition(topic, index) for index in range(partitions)]
    async with Admin(bootstrap_servers=bootstrap) as admin:

        async def whole() -> bool:
            latest = dict.fromkeys(tps, "latest")
            stable = (await admin.offsets(latest, read_committed=True)).checked()
            ends = (await admin.offsets(latest)).checked()
            return all(stable[tp].offset == ends[tp].offset for tp in tps)

        async with asyncio.timeout(within(30)):
            while not await whole():
                await asyncio.sleep(0.02)


async def values_of(
    bootstrap: str, topic: str, *, partitions: int = 2, isolation: Any = "read_committed"
) -> list[list[bytes | None]]:
    """What a reader sees in each partition when every transaction is decided; its position comes to the very end."""
    await decided(bootstrap, topic, partitions)
    tps = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[list[bytes | None]] = [[] for _ in tps]
    async with Consumer(bootstrap_servers=bootstrap, offset_reset="earliest", isolation_level=isolation) as consumer:
        consumer.assign(tps)
        ends = await consumer.end_offsets(*tps)
        while [await consumer.position(tp) for tp in tps] != [ends[tp] for tp in tps]:
            for record in await consumer.poll(timeout_ms=100):
                found[record.partition].append(record.value)
    return found


def values_in(piece: Piece) -> list[bytes]:
    buffers = piece.sink.buffers()
    ends = memoryview(buffers["value_offsets"]).cast("i")
    data = bytes(memoryview(buffers["value_data"]))
    return [data[start:end] for start, end in itertools.pairwise(ends)]


async def epochs_of(bootstrap: str, topic: str, partition: int = 0) -> list[tuple[int, int]]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        found = (await admin.describe_producers([TopicPartition(topic, partition)])).checked()
    return [(producer.producer_id, producer.epoch) for producer in found[TopicPartition(topic, partition)]]


async def spoilt(producer: Producer, topic: str) -> None:
    async with producer.transaction():
        await producer.send(topic, b"never", partition=0)
        producer.send(topic, b"nor this", partition=1)
        raise KeyError


def spoilt_blocking(producer: blocking.Producer, topic: str) -> None:
    with producer.transaction():
        producer.send(topic, b"never", partition=0)
        raise KeyError


async def too_large(producer: Producer, topic: str) -> None:
    async with producer.transaction():
        producer.send(topic, b"x", partition=1)
        producer.send(topic, random.Random(1).randbytes(5_000), partition=0)


# -- commit and abort


async def test_what_is_committed_is_shown_and_what_is_aborted_is_not(bootstrap: str, topic: str, txn: str) -> None:
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer:
        async with producer.transaction():
            for number in range(10):
                producer.send(topic, b"%d" % number, partition=number % 2)
        with pytest.raises(KeyError):
            await spoilt(producer, topic)
        await producer.begin()
        report = await producer.send_batch(topic, [b"10", b"12"], partition=0)
        await producer.commit()
        assert report.count == 2
    assert await values_of(bootstrap, topic) == [
        [b"0", b"2", b"4", b"6", b"8", b"10", b"12"],
        [b"1", b"3", b"5", b"7", b"9"],
    ]
    everything = await values_of(bootstrap, topic, isolation="read_uncommitted")
    assert b"never" in everything[0]


async def test_an_open_transaction_holds_readers_back_and_empty_ones_cost_nothing(
    bootstrap: str, topic: str, txn: str
) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer, Producer(bootstrap) as plain:
        for end in (producer.commit, producer.abort):
            await producer.begin()
            await end()
        await plain.send(topic, b"before", partition=0)
        await producer.begin()
        await producer.send(topic, b"open", partition=0)
        await plain.send(topic, b"after", partition=0)
        async with Consumer(
            bootstrap_servers=bootstrap, offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            consumer.assign([tp])
            assert [record.value for record in await consumer.poll(timeout_ms=5_000)] == [b"before"]
            assert (await consumer.end_offsets(tp))[tp] == 1
            assert await consumer.poll(timeout_ms=200) == []
            await producer.commit()
            seen: list[bytes | None] = []
            while len(seen) < 2:
                seen += [record.value for record in await consumer.poll(timeout_ms=5_000)]
            assert seen == [b"open", b"after"]
            await decided(bootstrap, topic)
            assert (await consumer.end_offsets(tp))[tp] == 4


async def test_every_way_to_read_agrees_on_what_random_transactions_left(bootstrap: str, topic: str, txn: str) -> None:
    """Two producers take turns at random; polls, Arrow batches and spans see exactly what was committed."""
    dice = random.Random(txn)
    expected: list[list[bytes]] = [[], []]
    async with (
        Producer(bootstrap, transactional_id=f"{txn}-a", **SOON) as one,
        Producer(bootstrap, transactional_id=f"{txn}-b", **SOON) as other,
        Producer(bootstrap) as plain,
    ):
        numbers = itertools.count()
        for _ in range(15):
            await one.begin()
            await other.begin()
            pending: dict[Producer, list[tuple[int, bytes]]] = {one: [], other: [], plain: []}
            order: list[tuple[int, int, bytes, Producer]] = []
            for _ in range(dice.randrange(1, 8)):
                who, partition = dice.choice([one, other, plain]), dice.randrange(2)
                value = b"%d" % next(numbers)
                report = await who.send(topic, value, partition=partition)
                order.append((partition, report.offset, value, who))
                pending[who].append((partition, value))
            kept = {plain}
            for who in dice.sample([one, other], 2):
                if dice.random() < 0.5:
                    await who.commit()
                    kept.add(who)
                else:
                    await who.abort()
            for partition, _, value, who in sorted(order, key=lambda sent: sent[:2]):
                if who in kept:
                    expected[partition].append(value)
    assert await values_of(bootstrap, topic) == expected
    tps = [TopicPartition(topic, index) for index in range(2)]
    async with Consumer(
        bootstrap_servers=bootstrap,
        offset_reset="earliest",
        isolation_level="read_committed",
        max_partition_fetch_bytes=200,  # so that aborted transactions go over several fetches
    ) as consumer:
        consumer.assign(tps)
        ends = await consumer.end_offsets(*tps)
        poured: list[list[bytes]] = [[], []]
        while [await consumer.position(tp) for tp in tps] != [ends[tp] for tp in tps]:
            for batch in await consumer.poll_arrow(timeout_ms=100):
                poured[batch["partition"][0].as_py()] += batch["value"].to_pylist()
    assert poured == expected
    async with SpanReader(bootstrap_servers=bootstrap, isolation_level="read_committed") as reader:
        cuts = [sorted({0, ends[tp], *(dice.randrange(ends[tp]) for _ in range(4))}) for tp in tps]
        spans = [
            Span(topic, "", index, start, end)
            for index, points in enumerate(cuts)
            for start, end in itertools.pairwise(points)
        ]
        rows: dict[Span, list[bytes]] = {span: [] for span in spans}
        ended: dict[Span, SpanEnd] = {}
        async for item in reader.read(spans):
            if isinstance(item, SpanEnd):
                ended[item.span] = item
            else:
                rows[item.span] += values_in(item)
    assert [
        [value for span in spans if span.partition == index for value in rows[span]] for index in (0, 1)
    ] == expected
    assert set(ended) == set(spans)
    assert all(end.rows == len(rows[span]) for span, end in ended.items())


def test_the_blocking_twin(bootstrap: str, topic: str, txn: str) -> None:
    reading: Any = {"bootstrap_servers": bootstrap, "offset_reset": "earliest", "group_id": txn, "auto_commit": False}
    with blocking.Producer(bootstrap, transactional_id=txn) as producer:
        with pytest.raises(ClientError, match="there is no transaction"):
            producer.send(topic, b"outside")
        with producer.transaction():
            for number in range(200):
                producer.send(topic, b"%d" % number, partition=0)
        with pytest.raises(KeyError):
            spoilt_blocking(producer, topic)
        with (
            blocking.Consumer(topic, isolation_level="read_committed", **reading) as consumer,
            producer.transaction(),
        ):
            for _, record in zip(range(100), consumer, strict=False):
                producer.send(topic, record.value, partition=1)
            producer.send_offsets(consumer)
        producer.begin()
        producer.send(topic, b"left", partition=0)
        prepared = producer.prepare()
    with blocking.Admin(bootstrap_servers=bootstrap) as admin:
        admin.end_transaction(prepared, commit=True)
    found = asyncio.run(values_of(bootstrap, topic))
    numbers = [b"%d" % number for number in range(200)]
    assert found[0] == [*numbers, b"left"]
    assert found[1] == numbers[:100]
    with blocking.Consumer(topic, isolation_level="read_committed", **reading) as consumer:
        assert next(iter(consumer)).value == b"100"


# -- who may


async def test_the_next_producer_with_an_id_fences_the_one_before(bootstrap: str, topic: str, txn: str) -> None:
    async with Producer(bootstrap, transactional_id=txn, **SOON) as old:
        await old.begin()
        await old.send(topic, b"of the old one", partition=0)
        async with Producer(bootstrap, transactional_id=txn, **SOON) as new:
            async with new.transaction():
                await new.send(topic, b"of the new one", partition=0)
            old.send(topic, b"too late", partition=0)
            with pytest.raises((TransactionFenced, TransactionAbortable)) as told:
                await old.commit()
            if told.type is TransactionAbortable:
                with pytest.raises(TransactionFenced):
                    await old.abort()
            for call in (old.begin, old.commit, old.abort):
                with pytest.raises(TransactionFenced, match="close this one"):
                    await call()
            with pytest.raises(TransactionFenced):
                old.send(topic, b"even later", partition=0)
            async with new.transaction():
                new.send(topic, b"goes on", partition=0)
    assert await values_of(bootstrap, topic) == [[b"of the new one", b"goes on"], []]


async def test_a_lost_record_allows_only_an_abort_and_the_next_epoch_goes_on(
    bootstrap: str, level: int, topic: str, txn: str
) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.configure_topic(topic, {"max.message.bytes": "1000"})
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer:
        async with producer.transaction():
            await producer.send(topic, b"first", partition=0)
        before = await epochs_of(bootstrap, topic)
        await producer.begin()
        await producer.send(topic, b"in vain", partition=0)
        with pytest.raises(RecordTooLarge):
            await producer.send(topic, random.Random(1).randbytes(5_000), partition=0)
        with pytest.raises(TransactionAbortable, match="MESSAGE_TOO_LARGE"):
            producer.send(topic, b"refused", partition=0)
        with pytest.raises(TransactionAbortable, match="abort"):
            await producer.commit()
        await producer.abort()
        with pytest.raises(TransactionAbortable):
            await too_large(producer, topic)
        async with producer.transaction():
            producer.send(topic, b"second", partition=0)
        await decided(bootstrap, topic)
        ((producer_id, epoch),) = await epochs_of(bootstrap, topic)
        assert producer_id == before[0][0]
        assert epoch >= before[0][1] + 2, "every loss costs an epoch"
    assert await values_of(bootstrap, topic) == [[b"first", b"second"], []]


async def test_records_that_find_no_partition_or_cannot_be_sent_are_lost_too(
    bootstrap: str, topic: str, txn: str
) -> None:
    lost: list[Any] = [b"fine", object()]
    async with Producer(bootstrap, transactional_id=txn, create_topics=False, max_block_ms=1_500, **SOON) as producer:
        await producer.begin()
        producer.send(topic, b"fine", partition=0)
        with pytest.raises(UnknownTopic):
            await producer.send("no-such-topic", b"lost")
        with pytest.raises(TransactionAbortable, match="does not exist"):
            await producer.commit()
        await producer.abort()
        await producer.begin()
        producer.send_batch(topic, lost, partition=0)
        with pytest.raises(TransactionAbortable, match="a row cannot be sent"):
            await producer.commit()
        await producer.abort()
        async with producer.transaction():
            producer.send(topic, b"kept", partition=0)
    assert await values_of(bootstrap, topic) == [[b"kept"], []]


async def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, level: int, topic: str, txn: str) -> None:
    async with Producer(bootstrap, transactional_id=txn, transaction_timeout_ms=500, **SOON) as producer:
        await producer.begin()
        await producer.send(topic, b"slow", partition=0)
        await decided(bootstrap, topic)  # the coordinator has ended it
        producer.send(topic, b"too late", partition=0)
        with pytest.raises(TransactionAbortable, match="INVALID_PRODUCER_EPOCH"):
            await producer.commit()
        if level == BUMPING:
            await producer.abort()
            async with producer.transaction():
                await producer.send(topic, b"goes on", partition=0)
        else:
            with pytest.raises(TransactionFenced):
                await producer.abort()
    assert await values_of(bootstrap, topic) == [[b"goes on"] if level == BUMPING else [], []]


async def test_a_commit_after_the_time_is_over_is_never_taken_for_one(bootstrap: str, topic: str, txn: str) -> None:
    async with Producer(bootstrap, transactional_id=txn, transaction_timeout_ms=500, **SOON) as producer:
        await producer.begin()
        await producer.send(topic, b"slow", partition=0)
        await decided(bootstrap, topic)
        with pytest.raises(TransactionFenced):
            await producer.commit()
    assert await values_of(bootstrap, topic) == [[], []]


async def test_a_time_that_brokers_do_not_allow_is_told_at_the_beginning(bootstrap: str, txn: str) -> None:
    with pytest.raises(ClientError, match=r"transaction\.max\.timeout\.ms"):
        async with Producer(bootstrap, transactional_id=txn, transaction_timeout_ms=10_000_000):
            raise AssertionError("it begins in vain")


# -- answers that are lost and callers that give up


async def test_an_end_whose_answer_is_lost_is_told_right_and_costs_an_epoch(
    bootstrap: str, topic: str, txn: str
) -> None:
    """In the classic protocol a late copy of it could end the next transaction, and must not be able to."""
    epochs = []
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer:
        assert producer._transactions is not None
        machine = producer._transactions.machine
        for number in range(6):
            await producer.begin()
            await producer.send(topic, b"%d" % number, partition=0)
            ending = asyncio.create_task(producer.commit() if number % 2 else producer.abort())
            async with asyncio.timeout(within(10)):
                while machine.asked is None or machine.asked.api is not Api.END:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)  # it is on its way now
            for link in producer._view._links.values():
                link.abort()
            await ending
            await producer.begin()
            epochs.append(machine.producer)
            await producer.abort()
    assert len(set(epochs)) == len(epochs)
    assert await values_of(bootstrap, topic) == [[b"1", b"3", b"5"], []]


async def test_a_commit_that_was_given_up_waiting_for_tells_its_outcome_when_it_is_called_again(
    bootstrap: str, topic: str, txn: str
) -> None:
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer:
        await producer.begin()
        producer.send(topic, b"kept", partition=0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await producer.commit()
        with pytest.raises(ClientError, match=r"commit\(\) was not waited for"):
            await producer.abort()
        await producer.commit()
        async with producer.transaction():
            producer.send(topic, b"next", partition=0)
    assert await values_of(bootstrap, topic) == [[b"kept", b"next"], []]


async def test_a_block_that_is_cancelled_is_aborted(bootstrap: str, topic: str, txn: str) -> None:
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer:
        written = asyncio.Event()

        async def work() -> None:
            async with producer.transaction():
                await producer.send(topic, b"never", partition=0)
                written.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await written.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with producer.transaction():
            producer.send(topic, b"next", partition=0)
        await producer.begin()
        await producer.send(topic, b"left open", partition=0)  # closing aborts it
    assert await values_of(bootstrap, topic) == [[b"next"], []]


# -- offsets


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_offsets_are_committed_with_the_records_or_not_at_all(
    bootstrap: str, topic: str, txn: str, protocol: Any
) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap) as plain:
        for number in range(6):
            await plain.send(topic, b"%d" % number, partition=0)
    async with (
        Consumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"group-{txn}",
            group_protocol=protocol,
            offset_reset="earliest",
            auto_commit=False,
            isolation_level="read_committed",
        ) as consumer,
        Producer(bootstrap, transactional_id=txn, **SOON) as producer,
    ):
        seen: list[int] = []
        while len(seen) < 3:
            seen += [record.offset for record in await consumer.poll(max_records=3, timeout_ms=5_000)]
        assert seen == [0, 1, 2]
        await producer.begin()
        await producer.send_offsets(consumer)
        await producer.abort()
        assert (await consumer.committed(tp))[tp] is None
        async with producer.transaction():
            await producer.send_offsets(consumer)
            await producer.send_offsets(consumer)  # again, and nothing is changed by it
        found = (await consumer.committed(tp))[tp]
        assert found is not None
        assert found.offset == 3
        async with producer.transaction():
            await producer.send_offsets(consumer, {tp: 5})
        assert (await consumer.committed(tp))[tp].offset == 5  # type: ignore[union-attr]
        mine = consumer.group_metadata()
        assert mine.generation > 0
        assert mine.member_id
        for stranger in (mine._replace(generation=mine.generation + 1), mine._replace(member_id="stranger")):
            with pytest.raises(TransactionAbortable, match=r"ILLEGAL_GENERATION|UNKNOWN_MEMBER_ID"):
                async with producer.transaction():
                    await producer.send_offsets(stranger, {tp: 6})
        assert (await consumer.committed(tp))[tp].offset == 5  # type: ignore[union-attr]
    async with Producer(bootstrap, transactional_id=txn, **SOON) as producer, producer.transaction():
        await producer.send_offsets(GroupMetadata(f"by-hand-{txn}"), {tp: 4})
    async with Admin(bootstrap_servers=bootstrap) as admin:
        assert (await admin.group_offsets(f"by-hand-{txn}"))[tp].offset == 4


WORKER = """
import sys
from penstock.blocking import Consumer, Producer
bootstrap, source, target, name, limit, crash = *sys.argv[1:5], int(sys.argv[5]), sys.argv[6] == "crash"
reading = dict(bootstrap_servers=bootstrap, group_id=name, offset_reset="earliest", auto_commit=False,
               isolation_level="read_committed", group_protocol=sys.argv[7])
if sys.argv[7] == "classic":
    reading |= {"session_timeout_ms": 3000, "heartbeat_interval_ms": 500}
producer = Producer(bootstrap, transactional_id=name, retry_backoff_ms=20)
consumer = Consumer(source, **reading)
done = 0
while True:
    records = consumer.poll(max_records=7, timeout_ms=300)
    if not records:
        if done:
            break
        continue
    with producer.transaction():
        for record in records:
            producer.send(target, record.value + b"!", key=record.key)
        producer.flush()
        producer.send_offsets(consumer)
        done += len(records)
        if crash and done >= limit:
            import os
            os._exit(9)
consumer.close()
producer.close()
"""


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consume_transform_produce_gives_every_record_once(bootstrap: str, topic: str, txn: str, protocol: str) -> None:
    """The first worker dies in a transaction that has everything but its commit; the second goes on."""
    target = f"{topic}-out"
    with blocking.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(target, partitions=2)
    numbers = [b"%d" % number for number in range(60)]
    with blocking.Producer(bootstrap, transactional_id=f"{txn}-source") as producer, producer.transaction():
        for number in numbers:
            producer.send(topic, number, key=number)
    for how, expected in (("crash", 9), ("whole", 0)):
        done = subprocess.run(
            [sys.executable, "-c", WORKER, bootstrap, topic, target, txn, "20", how, protocol],
            capture_output=True,
            text=True,
            timeout=within(90),
        )
        assert done.returncode == expected, done.stderr
    found = asyncio.run(values_of(bootstrap, target))
    assert sorted(value or b"" for values in found for value in values) == sorted(number + b"!" for number in numbers)


# -- ended elsewhere


ENDER = """
import sys
from penstock import PreparedTransaction
from penstock.blocking import Admin
with Admin(bootstrap_servers=sys.argv[1]) as admin:
    print(admin.end_transaction(PreparedTransaction.loads(sys.argv[2]), commit=sys.argv[3] == "commit").epoch)
"""


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_another_process_ends_what_was_prepared(bootstrap: str, level: int, topic: str, txn: str, end: str) -> None:
    async def prepare() -> PreparedTransaction:
        async with Producer(bootstrap, transactional_id=txn, **SOON) as producer:
            await producer.begin()
            producer.send(topic, b"prepared", partition=0)
            producer.send(topic, b"too", partition=1)
            prepared = await producer.prepare()
            with pytest.raises(ClientError, match="prepared"):
                producer.send(topic, b"no more", partition=0)
            return prepared

    prepared = asyncio.run(prepare())
    assert prepared.transaction_version == level
    for _ in range(2):  # whoever does not know whether it was done does it again
        done = subprocess.run(
            [sys.executable, "-c", ENDER, bootstrap, prepared.dumps(), end],
            capture_output=True,
            text=True,
            timeout=within(60),
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) == prepared.producer_epoch + (1 if level == BUMPING else 0)
    expected = [[b"prepared"], [b"too"]] if end == "commit" else [[], []]
    assert asyncio.run(values_of(bootstrap, topic)) == expected
    with (
        blocking.Admin(bootstrap_servers=bootstrap) as admin,
        pytest.raises(TransactionFenced, match="INVALID_TXN_STATE"),
    ):
        admin.end_transaction(prepared, commit=end != "commit")


async def test_what_is_prepared_may_be_ended_here_too(bootstrap: str, topic: str, txn: str) -> None:
    async with (
        Producer(bootstrap, transactional_id=txn, **SOON) as producer,
        Admin(bootstrap_servers=bootstrap) as admin,
    ):
        await producer.begin()
        empty = await producer.prepare()
        assert empty.empty
        await admin.end_transaction(empty, commit=True)
        await producer.abort()
        await producer.begin()
        producer.send(topic, b"prepared", partition=0)
        assert not (await producer.prepare()).empty
        await producer.commit()
        async with producer.transaction():
            producer.send(topic, b"next", partition=0)
    assert await values_of(bootstrap, topic) == [[b"prepared", b"next"], []]


# -- the level changes


async def test_a_producer_follows_a_level_that_rises(node: Node, level: int, topic: str, txn: str) -> None:
    """Levels are told when brokers are dialled: a producer whose connection broke learns of the new one.

    It ends its transaction as it began it and takes a new epoch before the first of the other kind.
    """
    await asyncio.to_thread(set_level, node.bootstrap, CLASSIC)
    try:
        async with Producer(node.bootstrap, transactional_id=txn, **SOON) as producer:
            async with producer.transaction():
                await producer.send(topic, b"0", partition=0)
            await producer.begin()
            await producer.send(topic, b"1", partition=0)
            await asyncio.to_thread(set_level, node.bootstrap, BUMPING)
            for link in producer._view._links.values():
                link.abort()
            classic = await epochs_of(node.bootstrap, topic)
            await producer.commit()
            for number in (2, 3):
                await producer.begin()
                await producer.send(topic, b"%d" % number, partition=0)
                assert (await producer.prepare()).transaction_version == BUMPING
                await producer.commit()
            ((producer_id, epoch),) = await epochs_of(node.bootstrap, topic)
    finally:
        await asyncio.to_thread(set_level, node.bootstrap, level)
    assert await values_of(node.bootstrap, topic) == [[b"0", b"1", b"2", b"3"], []]
    assert (producer_id, epoch) >= (classic[0][0], classic[0][1] + 2)


# -- the guide

BROKER = """
import contextlib, types


@contextlib.contextmanager
def broker():
    yield types.SimpleNamespace(bootstrap_servers={bootstrap!r})

"""


def test_every_program_of_the_guide_runs(make_node: NodeFactory, tmp_path: Path) -> None:
    """tests/docs runs them with our own node; here it is Apache Kafka in its place."""
    bootstrap = make_node("apache", apache=True, properties=QUICK).bootstrap
    programs = [block for block in blocks(ROOT / "docs" / "guides" / "transactions.md") if block.kind == "python"]
    assert len(programs) >= 5
    for block in programs:
        file = tmp_path / block.label
        judged = BROKER.format(bootstrap=bootstrap)
        file.write_text(block.text.replace("from penstock.testing import broker\n", judged))
        done = subprocess.run(
            [sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True, timeout=within(120)
        )
        assert done.returncode == 0, f"{block.text}\n{done.stderr}"
        with blocking.Admin(bootstrap_servers=bootstrap) as admin:  # each has a broker of its own on the page
            for found in admin.topics():
                admin.delete_topic(found.name)


# -- brokers come and go


@pytest.fixture(scope="module", params=["apache", "penstock"])
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kind = {"apache": ApacheCluster, "penstock": PenstockCluster}[request.param]
    with kind(tmp_path_factory.mktemp("three"), 3, properties={"transaction.state.log.num.partitions": "3"}) as started:
        yield started


class Ledger:
    """One producer at work for as long as a test lasts: what was committed, what was aborted, what is not known."""

    def __init__(self, bootstrap: str, topic: str, transactional_id: str) -> None:
        self._bootstrap, self._topic, self._id = bootstrap, topic, transactional_id
        self.committed: list[bytes] = []
        self.aborted: list[bytes] = []
        self._stop = asyncio.Event()

    async def work(self) -> None:
        settings: Any = {"request_timeout_ms": 3_000, "delivery_timeout_ms": 60_000, **SOON}
        numbers = itertools.count()
        while not self._stop.is_set():
            async with Producer(self._bootstrap, transactional_id=self._id, **settings) as producer:
                try:
                    while not self._stop.is_set():
                        await self._once(producer, numbers)
                except TransactionFenced:
                    continue

    async def _once(self, producer: Producer, numbers: Iterator[int]) -> None:
        values = [b"%d" % next(numbers) for _ in range(6)]
        try:
            async with producer.transaction():
                for index, value in enumerate(values):
                    producer.send(self._topic, value, partition=index % 3)
                if next(numbers) % 5 == 0:
                    raise KeyError
        except (KeyError, TransactionAbortable, TransactionFenced) as failed:
            self.aborted += values
            if isinstance(failed, TransactionFenced):
                raise
        else:
            self.committed += values

    async def __aenter__(self) -> Ledger:
        self._task = asyncio.create_task(self.work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await self._task

    async def goes_on(self) -> None:
        """Returns after a few more commits."""
        wanted = len(self.committed) + 30
        async with asyncio.timeout(within(60)):
            while len(self.committed) < wanted:
                assert not self._task.done(), self._task.exception()
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("level", [BUMPING, CLASSIC], ids=["bumping", "classic"])
@pytest.mark.parametrize("hit", ["coordinator moved", "coordinator lost", "leader lost"])
async def test_transactions_outlive_a_broker(three: Cluster, hit: str, level: int) -> None:
    name, txn = f"topic-{next(_numbers)}", f"txn-{next(_numbers)}"
    await asyncio.to_thread(set_level, three.bootstrap, level)
    await asyncio.to_thread(three.new_topic, name, 3, 3)
    async with Ledger(three.bootstrap, name, txn) as ledger:
        await ledger.goes_on()
        async with Admin(bootstrap_servers=three.bootstrap) as admin:
            coordinator = await admin._view.coordinator(txn, 1)
        leaders = [found.leader for found in three.partitions(name)]
        hurt = coordinator if hit.startswith("coordinator") else next(one for one in leaders if one != coordinator)
        if hit == "coordinator moved":
            # A clean stop hands over what it leads and coordinates while it still answers.
            await asyncio.to_thread(three.nodes[hurt].stop)
        else:
            three.nodes[hurt].kill()
        await ledger.goes_on()
        await asyncio.to_thread(three.start, hurt)
        await ledger.goes_on()
    await asyncio.to_thread(three.wait_until_whole)
    found = await values_of(three.bootstrap, name, partitions=3)
    assert sorted(value or b"" for values in found for value in values) == sorted(ledger.committed)
    assert ledger.aborted
