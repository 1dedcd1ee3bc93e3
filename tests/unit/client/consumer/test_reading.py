"""Reading without a group, from a broker in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from random import Random

import pytest

from penstock.client.consumer import Consumer, OffsetAndTimestamp
from penstock.client.errors import BadSetting, ClientError, Closed, NoOffsetForPartition, OffsetOutOfRange
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within
from tests.unit.client.consumer.scene import create, delete, numbers, put, read, run, trim, until, values


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running


def consumer_of(node: EmbeddedBroker, *topics: str, **settings: object) -> Consumer:
    settings = {"offset_reset": "earliest", "retry_backoff_ms": 10, "retry_backoff_max_ms": 50, **settings}
    return Consumer(*topics, bootstrap_servers=node.bootstrap_servers, **settings)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_in_order_in_every_codec(node: EmbeddedBroker, codec: str) -> None:
    put(node, f"codec-{codec}", numbers(0, 3_000), compression=codec)

    async def main() -> None:
        async with consumer_of(node, f"codec-{codec}") as consumer:
            assert await values(consumer, 3_000) == numbers(0, 3_000)

    run(main())


def test_large_packed_batches_are_unpacked_in_a_thread_and_keep_their_order(node: EmbeddedBroker) -> None:
    chance = Random(1)
    sent = [chance.randbytes(100_000) for _ in range(30)]
    put(node, "large", sent, compression="lz4")

    async def main() -> None:
        async with consumer_of(node, "large") as consumer:
            assert await values(consumer, 30) == sent

    run(main())


def test_the_next_fetch_is_under_way_before_the_application_has_its_records(node: EmbeddedBroker) -> None:
    put(node, "ahead", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "ahead") as consumer:
            records = await consumer.poll(timeout_ms=10_000)
            asked = consumer.metrics()["fetch-total"]
            assert (len(records), asked) == (10, 2)

    run(main())


def test_a_subscription_without_a_group_gets_every_partition(node: EmbeddedBroker) -> None:
    async def main() -> None:
        await create(node, "wide", 3)
        for partition in range(3):
            put(node, "wide", numbers(0, 10), partition=partition)
        async with consumer_of(node, "wide") as consumer:
            found = await read(consumer, 30)
            assert {(r.partition, r.offset) for r in found} == {(p, o) for p in range(3) for o in range(10)}
            assert consumer.assignment() == {("wide", 0), ("wide", 1), ("wide", 2)}

    run(main())


def test_a_pattern_matches_whole_names_and_topics_that_come_later(node: EmbeddedBroker) -> None:
    put(node, "log-a", [b"a"])
    put(node, "not-log-a", [b"no"])

    async def main() -> None:
        async with consumer_of(node, metadata_max_age_ms=100) as consumer:
            consumer.subscribe(pattern="log-.*")
            assert await values(consumer, 1) == [b"a"]
            put(node, "log-b", [b"b"])
            assert await values(consumer, 1) == [b"b"]
            assert consumer.assignment() == {("log-a", 0), ("log-b", 0)}

    run(main())


def test_a_loop_gives_records_one_by_one_and_goes_on_where_it_was_left(node: EmbeddedBroker) -> None:
    put(node, "loop", numbers(0, 20))

    async def main() -> None:
        async with consumer_of(node, "loop") as consumer:
            async for record in consumer:
                if record.offset == 4:
                    break
            assert await consumer.position(("loop", 0)) == 5
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                if record.offset == 6:
                    consumer.seek(("loop", 0), 18)
                if record.offset == 19:
                    break
            assert seen == [5, 6, 18, 19]

    run(main())


def test_a_loop_ends_when_the_consumer_is_closed(node: EmbeddedBroker) -> None:
    put(node, "ends", numbers(0, 2))

    async def main() -> None:
        consumer = consumer_of(node, "ends")
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            if record.offset == 1:
                asyncio.get_running_loop().call_soon(lambda: closing.append(asyncio.ensure_future(consumer.close())))
        assert seen == [0, 1]
        await closing[0]
        with pytest.raises(Closed):
            await consumer.poll()

    closing: list[asyncio.Future[None]] = []
    run(main())


def test_columns_are_what_was_sent(node: EmbeddedBroker) -> None:
    put(node, "columns", numbers(0, 1_000), timestamps=range(5_000, 6_000), compression="zstd")

    async def main() -> None:
        async with consumer_of(node, "columns") as consumer:
            rows = []
            async with asyncio.timeout(within(20)):
                while len(rows) < 1_000:
                    for table in await consumer.poll_arrow(max_records=300):
                        table.validate(full=True)
                        rows += table.to_pylist()
            assert [row["value"] for row in rows] == numbers(0, 1_000)
            assert [row["offset"] for row in rows] == list(range(1_000))
            assert rows[7]["timestamp"].timestamp() == 5.007

    run(main())


def test_seeks_drop_what_was_fetched_before(node: EmbeddedBroker) -> None:
    put(node, "seeks", numbers(0, 100))

    async def main() -> None:
        async with consumer_of(node, "seeks") as consumer:
            assert await values(consumer, 3) == numbers(0, 3)
            consumer.seek(("seeks", 0), 90)
            assert await values(consumer, 2) == numbers(90, 92)
            consumer.seek_to_start()
            assert await values(consumer, 2) == numbers(0, 2)
            consumer.seek_to_end(("seeks", 0))
            assert await consumer.position(("seeks", 0)) == 100
            put(node, "seeks", [b"new"])
            assert await values(consumer, 1) == [b"new"]

    run(main())


def test_time_is_a_place_to_read_from(node: EmbeddedBroker) -> None:
    put(node, "times", numbers(0, 10), timestamps=range(1_000, 2_000, 100))

    async def main() -> None:
        tp = ("times", 0)
        async with consumer_of(node, "times") as consumer:
            await read(consumer, 1)
            await consumer.seek_to_time(1_450)
            assert await values(consumer, 1) == [b"5"]
            await consumer.seek_to_time({tp: 99_999})
            assert await consumer.position(tp) == 10
            assert await consumer.offsets_for_times({tp: 1_100}) == {tp: OffsetAndTimestamp(1, 1_100, 0)}
            assert await consumer.offsets_for_times({tp: 99_999}) == {tp: None}
            assert (await consumer.beginning_offsets(tp), await consumer.end_offsets()) == ({tp: 0}, {tp: 10})

    run(main())


def test_the_reset_policy_says_where_to_begin(node: EmbeddedBroker) -> None:
    put(node, "resets", numbers(0, 5), timestamps=[1_000] * 3 + [int(time.time() * 1_000)] * 2)

    async def begins(policy: str) -> int:
        async with consumer_of(node, offset_reset=policy) as consumer:
            consumer.assign([("resets", 0)])
            return await consumer.position(("resets", 0))

    async def main() -> None:
        assert [await begins(policy) for policy in ("earliest", "latest", "by_duration:PT1H")] == [0, 5, 3]
        with pytest.raises(NoOffsetForPartition, match="resets-0: no offset was given and offset_reset is none"):
            await begins("none")

    run(main())


def test_the_paused_give_nothing_until_they_are_resumed(node: EmbeddedBroker) -> None:
    async def main() -> None:
        await create(node, "pauses", 2)
        for partition in range(2):
            put(node, "pauses", numbers(0, 50), partition=partition)
        async with consumer_of(node, "pauses", max_poll_records=10) as consumer:
            await read(consumer, 4)
            consumer.pause(("pauses", 0))
            assert consumer.paused() == {("pauses", 0)}
            found = [record async for record in _some(consumer, 40)]
            assert {record.partition for record in found} == {1}
            consumer.resume()
            rest = await read(consumer, 100 - 4 - 40)
            assert {record.partition for record in rest} >= {0}

    run(main())


async def _some(consumer: Consumer, count: int):  # type: ignore[no-untyped-def]
    for record in await read(consumer, count):
        yield record


def test_what_was_trimmed_away_is_left_behind_by_the_reset_policy(node: EmbeddedBroker) -> None:
    put(node, "trimmed", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "trimmed") as consumer:
            await read(consumer, 1)
            await trim(node, "trimmed", 6)
            consumer.seek(("trimmed", 0), 2)
            assert await values(consumer, 4) == numbers(6, 10)

    run(main())


def test_without_a_policy_an_offset_out_of_range_is_the_applications_to_cure(node: EmbeddedBroker) -> None:
    put(node, "strict", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, offset_reset="none") as consumer:
            consumer.assign([("strict", 0)])
            consumer.seek(("strict", 0), 99)
            for _ in range(2):
                with pytest.raises(OffsetOutOfRange, match=r"strict-0: offset 99 is not in the log"):
                    await consumer.poll(timeout_ms=5_000)
            consumer.seek(("strict", 0), 8)
            assert await values(consumer, 2) == numbers(8, 10)

    run(main())


def test_a_topic_that_is_not_there_yet_is_waited_for(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with consumer_of(node, "later", create_topics=False) as consumer:
            assert await consumer.poll(timeout_ms=100) == []
            put(node, "later", [b"here"])
            assert await values(consumer, 1) == [b"here"]

    run(main())


def test_a_deleted_topic_goes_and_one_of_its_name_may_come(node: EmbeddedBroker) -> None:
    put(node, "phoenix", numbers(0, 3))

    async def main() -> None:
        async with consumer_of(node, "phoenix", create_topics=False, metadata_max_age_ms=200) as consumer:
            await read(consumer, 3)
            await delete(node, "phoenix")
            await until(lambda: not consumer.assignment(), consumer)
            put(node, "phoenix", [b"again"])
            assert await values(consumer, 1) == [b"again"]

    run(main())


def test_a_cancelled_poll_loses_nothing(node: EmbeddedBroker) -> None:
    async def main() -> None:
        await create(node, "cancelled")
        async with consumer_of(node, "cancelled") as consumer:
            for number in range(20):
                polling = asyncio.ensure_future(consumer.poll(timeout_ms=5_000))
                await asyncio.sleep(0)
                put(node, "cancelled", [b"%d" % number])
                polling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await polling
            assert await values(consumer, 20) == numbers(0, 20)

    run(main())


def test_lag_is_what_is_left_to_read(node: EmbeddedBroker) -> None:
    put(node, "lags", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "lags") as consumer:
            await read(consumer, 4)
            assert await consumer.lag() == {("lags", 0): 6}
            assert consumer.metrics()["records-consumed-total"] == 4
            assert consumer.metrics()["records-lag-max"] == 6

    run(main())


def test_buffers_are_bounded(node: EmbeddedBroker) -> None:
    put(node, "bounded", [bytes(1_000)] * 3_000)

    async def main() -> None:
        async with consumer_of(node, "bounded", max_partition_fetch_bytes=50_000, fetch_max_bytes=200_000) as consumer:
            await read(consumer, 1)
            for _ in range(50):
                await asyncio.sleep(0)
                assert consumer.metrics()["buffered-bytes"] <= 300_000
            assert len(await read(consumer, 2_999)) == 2_999

    run(main())


def test_a_group_is_needed_to_commit(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with consumer_of(node) as consumer:
            for call in (consumer.commit, consumer.committed):
                with pytest.raises(BadSetting, match="group_id"):
                    await call()

    run(main())


def test_topics_and_partitions_are_not_mixed(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with consumer_of(node, "a") as consumer:
            with pytest.raises(ClientError, match="unsubscribe"):
                consumer.assign([("a", 0)])
            await consumer.unsubscribe()
            consumer.assign([("a", 0)])
            with pytest.raises(ClientError, match="unsubscribe"):
                consumer.subscribe("a")
            with pytest.raises(ClientError, match="b-1: the partition is not assigned"):
                consumer.seek(("b", 1), 0)

    run(main())


@pytest.mark.parametrize("partitions", [1, 2])
def test_nothing_buffered_of_a_former_topic_is_given_once_the_new_one_is_known(
    node: EmbeddedBroker, partitions: int
) -> None:
    """The new topic may have fewer partitions than the former one."""
    topic = f"former-{partitions}"

    async def main() -> None:
        await create(node, topic, 2)
        await asyncio.to_thread(put, node, topic, numbers(0, 10), partition=1)
        async with consumer_of(node, fetch_max_wait_ms=60_000) as consumer:
            consumer.assign([(topic, 1)])
            assert [record.value for record in await consumer.poll(max_records=3, timeout_ms=10_000)] == numbers(0, 3)
            await delete(node, topic)
            await create(node, topic, partitions)
            await consumer._engine().view.topics([topic])
            assert await consumer.poll(timeout_ms=100) == []

    run(main())
