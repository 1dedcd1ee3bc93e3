"""The producer against a broker in this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock import Producer, Report
from penstock.client.errors import (
    BadSetting,
    ClientError,
    Closed,
    NotReachable,
    RecordTooLarge,
    TimedOutWaiting,
    UnknownTopic,
)
from penstock.client.producer.delivery import Span
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within
from tests.unit.client.producer.scene import read_all


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 3}) as running:
        yield running


def producer(node: EmbeddedBroker, **settings: Any) -> Producer:
    return Producer(node.bootstrap_servers, **settings)


async def test_body_of_a_record_arrives_whole(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        report = await sender.send(
            "whole", b"v", key=b"k", partition=1, timestamp=77, headers=[("h", b"1"), ("n", None)]
        )
        nothing = await sender.send("whole", partition=1)
    assert report == Report("whole", 1, 0, 77)
    assert nothing.offset == 1
    first, second = (await read_all(node.bootstrap_servers, "whole", 3))[1]
    assert (first.key, first.value, first.timestamp, first.headers) == (b"k", b"v", 77, (("h", b"1"), ("n", None)))
    assert (second.key, second.value) == (None, None)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_is_read_back(node: EmbeddedBroker, compression: str) -> None:
    topic = f"packed-{compression}"
    values = [b"%d" % number * 20 for number in range(500)]
    async with producer(node, compression=compression) as sender:
        for value in values:
            sender.send(topic, value, partition=0)
    assert [record.value for record in (await read_all(node.bootstrap_servers, topic))[0]] == values


@pytest.mark.parametrize(("acks", "offset"), [(0, -1), (1, 0), ("all", 0)])
async def test_acks_say_who_must_have_a_record(node: EmbeddedBroker, acks: Any, offset: int) -> None:
    topic = f"acks-{acks}"
    async with producer(node, acks=acks) as sender:
        assert (await sender.send(topic, b"v", partition=0)).offset == offset
    while not (await read_all(node.bootstrap_servers, topic))[0]:
        await asyncio.sleep(0)


async def test_text_is_sent_as_utf_8(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        await sender.send("text", "größe", key="schlüssel", partition=0)
    (record,) = (await read_all(node.bootstrap_servers, "text", 3))[0]
    assert (record.key, record.value) == ("schlüssel".encode(), "größe".encode())


async def test_records_of_a_partition_keep_their_order(node: EmbeddedBroker) -> None:
    async with producer(node, batch_size=500, linger_ms=0) as sender:
        deliveries = [sender.send("order", b"%d" % number, partition=number % 3) for number in range(3_000)]
        reports = [await one for one in deliveries]
    assert [report.offset for report in reports] == [number // 3 for number in range(3_000)]
    found = await read_all(node.bootstrap_servers, "order", 3)
    assert [[int(record.value or b"") for record in partition] for partition in found] == [
        list(range(index, 3_000, 3)) for index in range(3)
    ]


async def test_leaving_the_block_loses_nothing(node: EmbeddedBroker) -> None:
    async with producer(node, linger_ms=60_000, delivery_timeout_ms=100_000) as sender:
        deliveries = [sender.send("left", b"v") for _ in range(1_000)]
    assert all(one.report() is not None for one in deliveries)


async def test_giving_up_waiting_leaves_the_record_alone(node: EmbeddedBroker) -> None:
    async with producer(node, linger_ms=50) as sender:
        await sender.partitions_for("given-up")
        delivery = sender.send("given-up", b"v", partition=0)
        waiter = asyncio.ensure_future(asyncio.wait_for(delivery, 0.001))
        with pytest.raises(TimeoutError):
            await waiter
        assert not delivery.done()
        assert (await delivery).offset == 0


async def test_callbacks_are_told_once_each_in_order(node: EmbeddedBroker) -> None:
    told: list[Any] = []
    async with producer(node) as sender:
        for _ in range(5):
            sender.send("called", b"v", partition=0, on_delivery=lambda report, error: told.append((report, error)))
    assert [(report.offset, error) for report, error in told] == [(offset, None) for offset in range(5)]


async def test_a_callback_may_send(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        more: list[Any] = []
        sender.send("chained", b"1", partition=0, on_delivery=lambda *_: more.append(sender.send("chained", b"2")))
        await sender.flush()
        await more[0]


async def test_rows_of_lists_land_by_key(node: EmbeddedBroker) -> None:
    keys = [b"%d" % number for number in range(1_000)]
    async with producer(node) as sender:
        bulk = await sender.send_batch("rows", keys, keys=keys, headers=[[("h", key)] for key in keys])
        single = [await sender.send("rows", b"again", key=key) for key in keys[:20]]
    assert bulk.count == 1_000
    assert sum(span.count for span in bulk.spans) == 1_000
    found = await read_all(node.bootstrap_servers, "rows", 3)
    home = {record.key: record.partition for partition in found for record in partition[: len(partition) - 20]}
    assert [report.partition for report in single] == [home[key] for key in keys[:20]]
    assert all(
        record.headers == (("h", record.key),) for part in found for record in part if record.value == record.key
    )


async def test_rows_larger_than_the_buffer_wait_for_room(node: EmbeddedBroker) -> None:
    async with producer(node, buffer_memory=100_000, bulk_batch_size=20_000) as sender:
        report = await sender.send_batch("much", [bytes(100)] * 20_000, partition=0)
        assert report.spans == (Span(0, 0, 20_000),)
        assert sender.metrics()["buffer_available_bytes"] == 100_000


async def test_an_arrow_table_is_sent_and_read_back_the_same(node: EmbeddedBroker) -> None:
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array([b"a", None, b"c"], pa.binary()),
            "value": pa.array(["x", "y", None], pa.large_string()),
            "timestamp": pa.array([5, 6, 7], pa.timestamp("ms")),
            "headers": pa.array([[{"key": "h", "value": b"1"}], [], None], header),
            "partition": pa.array([2, 2, 2], pa.int16()),
        }
    )
    async with producer(node) as sender:
        report = await sender.send_arrow("arrow", table)
        sliced = await sender.send_arrow("arrow", pa.concat_tables([table, table]).slice(1, 3), partition=1)
    assert report.spans == (Span(2, 0, 3),)
    assert sliced.count == 3
    found = await read_all(node.bootstrap_servers, "arrow", 3)
    rows = [
        (b"a", b"x", 5, (("h", b"1"),)),
        (None, b"y", 6, ()),
        (b"c", None, 7, ()),
    ]
    assert [(r.key, r.value, r.timestamp, r.headers) for r in found[2]] == rows
    assert [(r.key, r.value, r.timestamp, r.headers) for r in found[1]] == [rows[1], rows[2], rows[0]]


async def test_many_small_sends_without_room_can_wait_for_it(node: EmbeddedBroker) -> None:
    async with producer(node, buffer_memory=65_536) as sender:
        for _ in range(5_000):
            sender.send("roomy", bytes(100), partition=0)
            await sender.wait_for_room()
    assert len((await read_all(node.bootstrap_servers, "roomy", 3))[0]) == 5_000


async def test_sending_no_faster_than_there_is_room_leaves_no_record_waiting(node: EmbeddedBroker) -> None:
    async with producer(node, buffer_memory=1_000_000, batch_size=4_000) as sender:
        await sender.send("roomier", b"v", partition=0)
        for _ in range(100):
            for _ in range(400):
                sender.send("roomier", bytes(100), partition=0)
            assert not sender.metrics()["waiting_bytes"]
            await sender.wait_for_room()


async def test_closing_wakes_those_who_wait_for_room(node: EmbeddedBroker) -> None:
    sender = producer(node, buffer_memory=40_000, batch_size=4_000)
    await sender.send("closing", b"v", partition=0)
    for _ in range(600):
        sender.send("closing", bytes(100), partition=0)
    waiting = asyncio.ensure_future(sender.wait_for_room())
    await asyncio.sleep(0)
    await sender.close(0)
    await asyncio.wait_for(waiting, within(10))


async def test_awaiting_senders_get_their_turn_when_the_buffer_is_full(node: EmbeddedBroker) -> None:
    async with producer(node, buffer_memory=40_000, batch_size=4_000) as sender:
        await sender.send("turns", b"v", partition=1)
        reports = await asyncio.gather(*(sender.send("turns", bytes(100), partition=0) for _ in range(600)))
    assert [report.offset for report in reports] == list(range(600))


async def test_a_topic_that_nobody_creates_is_named(node: EmbeddedBroker) -> None:
    async with producer(node, create_topics=False, max_block_ms=3_000) as sender:
        with pytest.raises(UnknownTopic, match="no-such-topic"):
            await sender.send("no-such-topic", b"v")


async def test_a_partition_that_does_not_exist_is_named(node: EmbeddedBroker) -> None:
    async with producer(node, max_block_ms=3_000) as sender:
        with pytest.raises(UnknownTopic, match="partition 9 does not exist; it has 3"):
            await sender.send("three", b"v", partition=9)
        assert (await sender.send("three", b"v", partition=2)).offset == 0


async def test_a_name_that_cannot_be_is_refused_at_once(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        with pytest.raises(Exception, match="INVALID_TOPIC_EXCEPTION"):
            await sender.send("no spaces allowed", b"v")


async def test_a_record_that_is_too_large_is_refused_before_it_is_sent(node: EmbeddedBroker) -> None:
    async with producer(node, max_request_size=10_000) as sender:
        with pytest.raises(RecordTooLarge):
            sender.send("large", bytes(10_000))


WRONG: list[dict[str, Any]] = [
    {"value": 5},
    {"value": [1, 2]},
    {"key": 5},
    {"partition": "0"},
    {"timestamp": "now"},
    {"headers": [1]},
    {"headers": {"ab": b"x"}},
    {"headers": [(b"name", b"x")]},
]


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{number}-{next(iter(one))}" for number, one in enumerate(WRONG)])
async def test_what_cannot_be_sent_is_refused_at_once_and_holds_up_nobody(
    node: EmbeddedBroker, wrong: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    name, topic = next(iter(wrong)), f"wrong-{request.node.callspec.id}"
    async with producer(node) as sender:
        with pytest.raises(TypeError, match=name):
            sender.send(topic, **wrong)  # its topic is not known
        await sender.send(topic, b"v", partition=0)
        with pytest.raises(TypeError, match=name):
            sender.send(topic, **wrong)  # it would be the first of a batch
        delivery = sender.send(topic, b"v", partition=0)
        with pytest.raises(TypeError, match=name):
            sender.send(topic, **{"partition": 0, **wrong})  # there is an open batch
        assert (await delivery).offset == 1
        assert not sender.metrics()["waiting_bytes"]


async def test_a_record_that_finds_no_place_after_waiting_fails_alone(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        gaps = sender.send("gaps", memoryview(b"abcd")[::2])
        whole = sender.send("gaps", b"v")
        with pytest.raises(ClientError, match=r"contiguous|gaps"):
            await gaps
        assert (await whole).offset == 0


async def test_a_partitioner_that_fails_after_waiting_fails_its_record_alone(node: EmbeddedBroker) -> None:
    def choose(_topic: str, key: bytes | None, _value: bytes | None, _partitions: int) -> int:
        return {b"known": 0}[key or b""]

    async with producer(node, partitioner=choose) as sender:
        stranger, known = sender.send("chosen", b"v", key=b"other"), sender.send("chosen", b"v", key=b"known")
        with pytest.raises(ClientError, match="other"):
            await stranger
        assert (await known).offset == 0


async def test_a_closed_producer_takes_nothing(node: EmbeddedBroker) -> None:
    sender = producer(node)
    async with sender:
        await sender.send("closing", b"v")
    with pytest.raises(Closed):
        sender.send("closing", b"v")
    with pytest.raises(Closed):
        sender.send_batch("closing", [b"v"])
    await sender.close()


async def test_nothing_is_left_behind(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        await sender.send("clean", b"v")
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_without_a_broker_close_fails_what_is_left() -> None:
    sender = Producer("127.0.0.1:1", max_block_ms=60_000)
    delivery = sender.send("t", b"v")
    await sender.close(timeout_ms=50)
    with pytest.raises(Closed, match="before the record was delivered"):
        await delivery


async def test_without_a_broker_sending_says_so_in_time() -> None:
    async with Producer("127.0.0.1:1", max_block_ms=200) as sender:
        with pytest.raises(NotReachable, match=r"127\.0\.0\.1:1"):
            await sender.send("t", b"v")


def test_an_interrupt_ends_a_producer_that_has_nobody_to_send_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.producer.producer.INTERRUPTED_CLOSE_MS", 50)
    deliveries: list[Any] = []

    async def main() -> None:
        async with Producer("127.0.0.1:1") as sender:
            deliveries.append(sender.send("t", b"v"))
            await asyncio.Event().wait()

    async def interrupted() -> None:
        task = asyncio.create_task(main())
        while not deliveries:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(interrupted())
    assert isinstance(deliveries[0].exception(), Closed)


async def test_flush_waits_no_longer_than_it_may() -> None:
    sender = Producer("127.0.0.1:1")
    sender.send("t", b"v")
    with pytest.raises(TimedOutWaiting):
        await sender.flush(timeout_ms=20)
    await sender.close(timeout_ms=0)


def test_a_bad_address_is_a_bad_setting() -> None:
    with pytest.raises(BadSetting, match="bootstrap_servers"):
        Producer("host:port")


def shares(reports: list[Report]) -> list[int]:
    """How many records went to each partition, the smallest share first."""
    counts = Counter(report.partition for report in reports)
    return sorted(counts[partition] for partition in range(3))


async def test_records_without_a_key_go_evenly_to_all_partitions_of_a_topic_just_met(node: EmbeddedBroker) -> None:
    async with producer(node) as sender:
        reports = [await sender.send("spread", b"first")]
        deliveries = []
        for number in range(30_000):
            deliveries.append(sender.send("spread", b"%010d" % number))
            if number % 100 == 0:
                await sender.wait_for_room()
        reports += [await one for one in deliveries]
    least, _, most = shares(reports)
    assert most < 1.5 * least


async def test_rows_without_a_key_go_evenly_to_all_partitions_too(node: EmbeddedBroker) -> None:
    async with producer(node, bulk_batch_size=16_384) as sender:
        report = await sender.send_batch("spread-rows", [b"%010d" % number for number in range(30_000)])
    counts = Counter[int]()
    for span in report.spans:
        counts[span.partition] += span.count
    assert sum(counts.values()) == 30_000
    assert max(counts.values()) < 1.5 * min(counts[partition] for partition in range(3))
