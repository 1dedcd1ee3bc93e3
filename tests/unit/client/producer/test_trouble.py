"""The producer when brokers refuse, connections break and time runs out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Admin, Producer
from penstock.client.cluster_view import ClusterView
from penstock.client.errors import BrokerRefused, NotReachable, RecordTooLarge, TimedOutWaiting
from penstock.model.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
    KAFKA_STORAGE_ERROR,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import Millis
from penstock.testing import EmbeddedBroker, broker
from tests.patience import until
from tests.unit.client.producer.scene import CuttingProxy, cutting_proxy, read_all

PATIENCE_S = 20
SOON = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 2}) as running:
        yield running


@pytest.fixture(autouse=True)
def _peace(node: EmbeddedBroker) -> Iterator[None]:
    yield
    node.clear_faults()


async def values_of(node: EmbeddedBroker, topic: str, partition: int = 0) -> list[int]:
    found = await read_all(node.bootstrap_servers, topic, 2)
    return [int(record.value or b"-1") for record in found[partition]]


@pytest.mark.parametrize(
    "error", [NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION]
)
async def test_what_passes_is_tried_again(node: EmbeddedBroker, error: ErrorCode) -> None:
    topic = f"again-{error.code}"
    async with Producer(node.bootstrap_servers, **SOON) as producer:
        await producer.send(topic, b"0", partition=0)
        node.fail(api="Produce", code=error, times=3)
        deliveries = [producer.send(topic, b"%d" % number, partition=0) for number in range(1, 100)]
        await producer.flush()
        assert all(one.report() is not None for one in deliveries)
        assert producer.metrics()["retries"] >= 3
    assert await values_of(node, topic) == list(range(100))


async def test_a_broker_that_is_behind_does_not_make_a_topic_forgotten(node: EmbeddedBroker) -> None:
    """It has just come back and does not know the topic yet; the next one that is asked does."""
    async with Producer(node.bootstrap_servers, **SOON) as producer:
        await producer.send("behind", b"0", partition=0)
        node.fail(api="Metadata", code=UNKNOWN_TOPIC_OR_PARTITION, times=2)
        node.fail(api="Produce", code=NOT_LEADER_OR_FOLLOWER)
        assert (await producer.send("behind", b"1", partition=0)).offset == 1


async def test_retries_have_an_end(node: EmbeddedBroker) -> None:
    async with Producer(node.bootstrap_servers, retries=2, **SOON) as producer:
        await producer.send("end", b"0", partition=0)
        node.fail(api="Produce", code=NOT_ENOUGH_REPLICAS, times=3)
        with pytest.raises(BrokerRefused, match="NOT_ENOUGH_REPLICAS"):
            await producer.send("end", b"1", partition=0)
        assert (await producer.send("end", b"2", partition=0)).offset == 1
    assert await values_of(node, "end") == [0, 2]


async def test_a_refusal_for_good_is_told_and_what_follows_goes_on(node: EmbeddedBroker) -> None:
    async with Producer(node.bootstrap_servers, linger_ms=0, **SOON) as producer:
        await producer.send("refused", b"0", partition=0)
        node.fail(api="Produce", code=INVALID_RECORD)
        with pytest.raises(BrokerRefused, match="INVALID_RECORD"):
            await producer.send("refused", b"1", partition=0)
        for number in range(2, 10):
            await producer.send("refused", b"%d" % number, partition=0)
        assert producer.metrics()["epoch_bumps"] == 1
    assert await values_of(node, "refused") == [0, *range(2, 10)]


async def test_a_producer_whose_epochs_are_used_up_goes_on_under_another_id(node: EmbeddedBroker) -> None:
    """Every batch that is refused for good costs an epoch; 32,766 is the last that is used."""
    async with Producer(node.bootstrap_servers, linger_ms=0, **SOON) as producer:
        await producer.send("epochs", b"0", partition=0)
        identity = producer._sender.identity
        assert identity.current is not None
        first_id = identity.current[0]
        identity.current = (first_id, 32_760)
        seen = set()
        for number in range(1, 21):
            if number % 2:
                node.fail(api="Produce", code=INVALID_RECORD)
                with pytest.raises(BrokerRefused, match="INVALID_RECORD"):
                    await producer.send("epochs", b"%d" % number, partition=0)
            else:
                await producer.send("epochs", b"%d" % number, partition=0)
                seen.add(identity.current)
        assert producer.metrics()["epoch_bumps"] == 10
    assert max(epoch for producer_id, epoch in seen if producer_id == first_id) == 32_766
    assert {epoch for producer_id, epoch in seen if producer_id != first_id} == {0, 1, 2, 3}
    assert await values_of(node, "epochs") == list(range(0, 21, 2))


@pytest.mark.parametrize("error", [UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_EPOCH])
async def test_a_forgotten_producer_introduces_itself_again(node: EmbeddedBroker, error: ErrorCode) -> None:
    topic = f"forgotten-{error.code}"
    async with Producer(node.bootstrap_servers, **SOON) as producer:
        await producer.send(topic, b"0", partition=0)
        node.fail(api="Produce", code=error)
        for number in range(1, 10):
            await producer.send(topic, b"%d" % number, partition=0)
    assert await values_of(node, topic) == list(range(10))


async def test_a_hole_in_the_log_is_told_once(node: EmbeddedBroker) -> None:
    async with Producer(node.bootstrap_servers, linger_ms=0, **SOON) as producer:
        await producer.send("hole", b"0", partition=0)
        node.fail(api="Produce", code=OUT_OF_ORDER_SEQUENCE_NUMBER)
        with pytest.raises(BrokerRefused, match="OUT_OF_ORDER"):
            await producer.send("hole", b"1", partition=0)
        assert (await producer.send("hole", b"2", partition=0)).offset == 1


async def test_no_producer_id_yet_is_no_reason_to_fail(node: EmbeddedBroker) -> None:
    node.fail(api="InitProducerId", code="COORDINATOR_NOT_AVAILABLE", times=2)
    async with Producer(node.bootstrap_servers, **SOON) as producer:
        assert (await producer.send("patient", b"0", partition=0)).offset == 0


async def test_who_may_not_have_a_producer_id_is_told(node: EmbeddedBroker) -> None:
    node.fail(api="InitProducerId", code="CLUSTER_AUTHORIZATION_FAILED")
    async with Producer(node.bootstrap_servers, **SOON) as producer:
        with pytest.raises(Exception, match="CLUSTER_AUTHORIZATION_FAILED"):
            await producer.send("denied", b"0", partition=0)


@pytest.mark.parametrize("served", [False, True], ids=["before", "after"])
async def test_a_broken_connection_neither_loses_nor_repeats(node: EmbeddedBroker, served: bool) -> None:
    topic = f"broken-{served}"
    async with Producer(node.bootstrap_servers, linger_ms=0, batch_size=200, **SOON) as producer:
        await producer.send(topic, b"0", partition=0)
        for _ in range(5):
            node.disconnect(api="Produce", served=served)
            start = len(await values_of(node, topic))
            deliveries = [producer.send(topic, b"%d" % (start + number), partition=0) for number in range(100)]
            await producer.flush()
            assert all(one.report() is not None for one in deliveries)
    assert await values_of(node, topic) == list(range(501))


async def test_a_batch_that_is_too_large_for_the_topic_comes_apart() -> None:
    with broker({"message.max.bytes": 3_000, "num.partitions": 1}) as node:
        async with Producer(node.bootstrap_servers, **SOON) as producer:
            told: list[int] = []
            deliveries = [
                producer.send("split", b"%04d" % number + bytes(196), on_delivery=lambda r, e: told.append(r.offset))  # type: ignore[union-attr]
                for number in range(60)
            ]
            reports = [await one for one in deliveries]
            bulk = await producer.send_batch("split", [bytes(200)] * 100)
            with pytest.raises(RecordTooLarge, match="MESSAGE_TOO_LARGE"):
                await producer.send("split", bytes(5_000))
            assert (await producer.send("split", b"after")).offset == 160
            assert producer.metrics()["splits"] > 0
        assert [report.offset for report in reports] == list(range(60))
        assert sorted(told) == list(range(60))
        assert [(span.base_offset, span.count) for span in bulk.spans] == [(60, 100)]
        found = (await read_all(node.bootstrap_servers, "split"))[0]
        assert [int(record.value[:4]) for record in found[:60]] == list(range(60))  # type: ignore[index]


async def test_a_bulk_tells_which_of_its_rows_failed_and_why() -> None:
    with broker({"message.max.bytes": 4_000, "num.partitions": 2}) as node:
        async with Producer(node.bootstrap_servers, **SOON) as producer:
            values = [b"%d" % row + bytes(5_000 if row in (7, 41) else 100) for row in range(60)]
            keys = [b"%d" % (row % 5) for row in range(60)]
            for delivery in (
                producer.send_batch("which", values),
                producer.send_batch("which", values, keys=keys),
                producer.send_batch("which", [*values, bytes(2_000_000), b"unplaced"]),
            ):
                with pytest.raises(RecordTooLarge):
                    await delivery
                failed = {row: type(why) for rows, why in delivery.failures() for row in rows}
                assert failed == dict.fromkeys([7, 41, *([60, 61] if delivery.failure else [])], RecordTooLarge)
                assert delivery.delivered == 58


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_nothing_is_lost_repeated_or_reordered_while_connections_are_cut(seed: int) -> None:
    async with cutting_proxy(CuttingProxy(seed)) as proxy:
        with broker({**proxy.settings, "num.partitions": 2}):
            async with Producer(f"127.0.0.1:{proxy.port}", batch_size=2_000, linger_ms=1, **SOON) as producer:
                await producer.partitions_for("cut")
                proxy.cutting = True
                deliveries = []
                for number in range(20_000):
                    deliveries.append(producer.send("cut", b"%d" % number + b" " * 80, partition=number % 2))
                    if number % 50 == 0:
                        await producer.wait_for_room()
                await producer.flush()
                proxy.cutting = False
                assert proxy.cuts > 3
                assert [one.exception() for one in deliveries if one.exception()] == []
            found = await read_all(f"127.0.0.1:{proxy.port}", "cut", 2)
    assert [[int(record.value or b"-1") for record in partition] for partition in found] == [
        list(range(0, 20_000, 2)),
        list(range(1, 20_000, 2)),
    ]


async def test_a_restart_of_the_broker_loses_nothing() -> None:
    with broker({"num.partitions": 1}) as node:
        async with Producer(node.bootstrap_servers, linger_ms=1, **SOON) as producer:
            deliveries = [producer.send("restart", b"%d" % number) for number in range(500)]
            await deliveries[0]
            restart = asyncio.get_running_loop().run_in_executor(None, node.restart)
            number = 500
            while not restart.done():
                deliveries.append(producer.send("restart", b"%d" % number))
                number += 1
                await asyncio.sleep(0.001)
            await restart
            await producer.flush()
            assert [one.exception() for one in deliveries if one.exception()] == []
        (found,) = await read_all(node.bootstrap_servers, "restart")
    assert [int(record.value or b"-1") for record in found] == list(range(number))


async def test_a_broker_that_does_not_answer_is_asked_again_and_repeats_nothing() -> None:
    with broker({"num.partitions": 1}) as node:
        async with Producer(node.bootstrap_servers, linger_ms=0, request_timeout_ms=300, **SOON) as producer:
            await producer.send("mute", b"0")
            with node.paused():
                deliveries = [producer.send("mute", b"%d" % number) for number in range(1, 50)]
                while not producer.metrics()["retries"]:
                    await asyncio.sleep(0.01)
            reports = [await one for one in deliveries]
        assert [report.offset for report in reports] == list(range(1, 50))
        (found,) = await read_all(node.bootstrap_servers, "mute")
    assert [int(record.value or b"-1") for record in found] == list(range(50))


class HandClock:
    """Time that only a test moves."""

    def __init__(self) -> None:
        self.at_ms = 0.0
        self._told: list[Callable[[], None]] = []

    def now_ms(self) -> Millis:
        return Millis(1_700_000_000_000 + int(self.at_ms))

    def monotonic_ms(self) -> float:
        return self.at_ms

    def when_jumped(self, callback: Callable[[], None]) -> None:
        self._told.append(callback)

    def jump(self, ms: float) -> None:
        self.at_ms += ms
        for tell in self._told:
            tell()


async def test_a_delivery_times_out_by_the_clock_it_was_given(node: EmbeddedBroker) -> None:
    clock = HandClock()
    async with Producer(node.bootstrap_servers, clock=clock, linger_ms=0, **SOON) as producer:
        await producer.send("late", b"0", partition=0)
        node.fail(api="Produce", code=NOT_ENOUGH_REPLICAS, times=1_000_000)
        delivery = producer.send("late", b"1", partition=0)
        waiting: asyncio.Future[Any] = asyncio.ensure_future(_outcome(delivery))
        while producer.metrics()["retries"] < 2:
            await asyncio.sleep(0.001)
        clock.jump(120_001)
        failure = await waiting
        assert isinstance(failure, TimedOutWaiting)
        assert "NOT_ENOUGH_REPLICAS" in str(failure)
        node.clear_faults()
        assert (await producer.send("late", b"2", partition=0)).offset == 1
    assert await values_of(node, "late") == [0, 2]


async def _outcome(delivery: Any) -> Any:
    try:
        return await delivery
    except TimedOutWaiting as late:
        return late


async def test_a_broker_that_is_away_is_told_a_few_times_and_dialled_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "penstock.client")
    with broker({"num.partitions": 1}) as node:
        tries = 0
        async with Producer(node.bootstrap_servers, retry_backoff_ms=1, retry_backoff_max_ms=4) as producer:
            await producer.send("away", b"0")
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, node.stop)
            delivery = producer.send("away", b"1")
            async with asyncio.timeout(PATIENCE_S):
                while tries < 40:
                    await asyncio.sleep(0.001)
                    tries = producer.metrics()["connection_failures"]
            await loop.run_in_executor(None, node.start)
            assert (await delivery).offset == 1
    words = [record.getMessage() for record in caplog.records if record.name.startswith("penstock.client")]
    first = [line for line in words if line.endswith("; trying on")]
    assert len(first) == len(set(first)) <= 3, words
    assert any(line.startswith("cannot reach broker 1: ") for line in first), words
    assert any(line.startswith("broker 1 answers again, after ") for line in words), words
    # What comes in between is told by the time that passed, which is a matter of the machine.
    assert all(line in first or " tries: " in line or " again, after " in line for line in words), words


async def test_without_any_broker_metadata_is_asked_for_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    with broker({"num.partitions": 1}) as node:
        async with Producer(node.bootstrap_servers, retry_backoff_ms=1, retry_backoff_max_ms=1_000) as producer:
            await producer.send("rare", b"0")
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, node.stop)
            asked = []
            refreshed = ClusterView.refreshed

            async def counted(view: ClusterView) -> None:
                asked.append(loop.time())
                await refreshed(view)

            monkeypatch.setattr(ClusterView, "refreshed", counted)
            delivery = producer.send("rare", b"1")
            async with asyncio.timeout(PATIENCE_S):
                while len(asked) < 8:
                    await asyncio.sleep(0.001)
            await loop.run_in_executor(None, node.start)
            assert (await delivery).offset == 1
    # 1, 2, 4, ... 64 ms, a fifth more or less.
    assert asked[7] - asked[0] >= 0.8 * 0.127


async def test_a_port_that_speaks_another_language_is_told_at_once() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    web = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = web.sockets[0].getsockname()[1]
    async with web, Producer(f"127.0.0.1:{port}", max_block_ms=3_600_000) as producer:
        with pytest.raises(NotReachable, match=r"it answers in HTTP, not Kafka; is this a Kafka port\?"):
            await producer.send("t", b"v")


async def test_nothing_is_kept_of_topics_that_were_deleted(node: EmbeddedBroker) -> None:
    """Deleted for as long as metadata is good for: until then it might be a broker that lags behind."""
    names = [f"deleted-{number}" for number in range(3)]
    async with (
        Admin(bootstrap_servers=node.bootstrap_servers) as admin,
        Producer(node.bootstrap_servers, metadata_max_age_ms=100, **SOON) as producer,
    ):
        for name in ("stays", *names):
            await producer.send(name, b"0")
        await admin.delete_topics(names)
        await until(lambda: list(producer._accumulator.topics) == ["stays"])
        await producer.send("stays", b"1")
        await admin.create_topic(names[0])
        assert (await producer.send(names[0], b"0")).offset == 0
