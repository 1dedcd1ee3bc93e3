"""Reading in a group: what is committed when, and what the application is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock.client.consumer import Consumer, OffsetAndMetadata, TopicPartition
from penstock.client.errors import CommitFailed
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within
from tests.unit.client.consumer.scene import create, delete, numbers, put, read, run, until, values


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    # Members of the newer protocol learn of changes with their heartbeats.
    with broker(
        {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.min.heartbeat.interval.ms": 100}
    ) as running:
        yield running


def consumer_of(node: EmbeddedBroker, *topics: str, **settings: object) -> Consumer:
    settings = {"offset_reset": "earliest", "retry_backoff_ms": 10, **settings}
    if settings.get("group_protocol", "classic") == "classic":
        settings.setdefault("heartbeat_interval_ms", 100)
    return Consumer(*topics, bootstrap_servers=node.bootstrap_servers, **settings)


async def committed(node: EmbeddedBroker, group: str, topic: str) -> int | None:
    tp = (topic, 0)
    async with consumer_of(node, group_id=group, auto_commit=False) as other:
        found = (await other.committed(tp))[TopicPartition(*tp)]
        return None if found is None else found.offset


protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@protocols
def test_the_next_member_goes_on_where_the_last_one_stopped(node: EmbeddedBroker, protocol: str) -> None:
    topic = f"next-{protocol}"
    put(node, topic, numbers(0, 20))

    async def main() -> None:
        for first in (0, 5, 10):
            async with consumer_of(node, topic, group_id=topic, group_protocol=protocol) as consumer:
                assert await values(consumer, 5) == numbers(first, first + 5)
        assert await committed(node, topic, topic) == 15

    run(main())


def test_nothing_is_committed_by_itself_when_that_was_not_wanted(node: EmbeddedBroker) -> None:
    put(node, "manual", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "manual", group_id="manual", auto_commit=False) as consumer:
            await read(consumer, 4)
            await consumer.commit()
            await read(consumer, 3)
        assert await committed(node, "manual", "manual") == 4

    run(main())


def test_a_commit_inside_a_loop_covers_the_record_in_its_body(node: EmbeddedBroker) -> None:
    put(node, "inside", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "inside", group_id="inside", auto_commit=False) as consumer:
            async for record in consumer:
                if record.offset == 3:
                    await consumer.commit()
                    assert (await consumer.committed())[TopicPartition("inside", 0)] == OffsetAndMetadata(4, "", 0)
                if record.offset == 9:
                    break

    run(main())


def test_an_application_that_fails_on_a_record_gets_it_again(node: EmbeddedBroker) -> None:
    put(node, "fails", numbers(0, 10))

    async def work() -> None:
        async with consumer_of(node, "fails", group_id="fails") as consumer:
            async for record in consumer:
                if record.offset == 6:
                    _ = 1 / 0

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await work()
        assert await committed(node, "fails", "fails") == 6

    run(main())


def test_automatic_commits_leave_out_what_the_application_still_works_on(node: EmbeddedBroker) -> None:
    put(node, "works", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "works", group_id="works", auto_commit_interval_ms=20) as consumer:
            assert len(await read(consumer, 4)) == 4
            # The place where it began is committed at once, and for five intervals nothing else.
            await until(lambda: consumer.metrics()["commit-total"] == 1)
            await asyncio.sleep(0.1)
            assert consumer.metrics()["commit-total"] == 1
            assert await committed(node, "works", "works") == 0
            assert len(await consumer.poll(3)) == 3
            await until(lambda: consumer.metrics()["commit-total"] == 2)
            assert await committed(node, "works", "works") == 4

    run(main())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_metrics_tell_how_it_stands_in_its_group(node: EmbeddedBroker, protocol: str) -> None:
    topic = f"measured-{protocol}"
    put(node, topic, numbers(0, 3))

    async def main() -> None:
        async with consumer_of(node, topic, group_id=topic, group_protocol=protocol, auto_commit=False) as consumer:
            assert consumer.metrics()["last-rebalance-seconds-ago"] == -1
            assert len(await read(consumer, 3)) == 3
            await consumer.commit()
            await until(lambda: consumer.metrics()["heartbeat-total"] > 0)
            found = consumer.metrics()
            assert (found["join-total"] >= 1, found["coordinator-change-total"]) == (True, 1)
            assert (found["rebalance-total"], found["failed-rebalance-total"]) == (1, 0)
            assert found["partitions-assigned-total"] == found["assigned-partitions"] > 0
            assert found["partitions-revoked-total"] == found["partitions-lost-total"] == 0
            assert 0 <= found["rebalance-latency-avg"] <= found["rebalance-latency-max"]
            assert 0 < found["commit-latency-avg"] <= found["commit-latency-max"]
            assert 0 <= found["last-rebalance-seconds-ago"] < 60
            assert 0 <= found["last-heartbeat-seconds-ago"] < 60

    run(main())


def test_automatic_commits_go_on_inside_a_loop(node: EmbeddedBroker) -> None:
    put(node, "slow", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "slow", group_id="slow", auto_commit_interval_ms=20) as consumer:
            async for record in consumer:
                if record.offset == 5:
                    async with asyncio.timeout(within(20)):
                        while await committed(node, "slow", "slow") != 5:
                            await asyncio.sleep(0.02)
                    break
            assert await values(consumer, 4) == numbers(6, 10)

    run(main())


def test_offsets_are_committed_as_given_without_waiting(node: EmbeddedBroker) -> None:
    put(node, "given", numbers(0, 3))

    async def main() -> None:
        tp = TopicPartition("given", 0)
        async with consumer_of(node, group_id="given", auto_commit=False) as consumer:
            consumer.assign([tp])
            await read(consumer, 3)
            consumer.commit_nowait()
            await consumer.commit_nowait({tp: OffsetAndMetadata(2, "two")})
            assert await consumer.committed(tp) == {tp: OffsetAndMetadata(2, "two", -1)}
            await consumer.commit({tp: 1})
        assert await committed(node, "given", "given") == 1

    run(main())


@protocols
def test_two_share_a_topic_and_every_record_comes_once(node: EmbeddedBroker, protocol: str) -> None:
    topic = f"share-{protocol}"

    async def main() -> None:
        await create(node, topic, 4)
        told: list[tuple[str, str, int]] = []

        def teller(name: str, what: str):  # type: ignore[no-untyped-def]
            async def tell(partitions: list[TopicPartition]) -> None:
                await asyncio.sleep(0)
                told.append((name, what, len(partitions)))

            return tell

        def subscribed(name: str) -> Consumer:
            made = consumer_of(node, group_id=topic, group_protocol=protocol)
            made.subscribe(topic, on_assigned=teller(name, "got"), on_revoked=teller(name, "gave"))
            return made

        seen: list[tuple[int, bytes | None]] = []
        async with subscribed("a") as one:
            await until(lambda: len(one.assignment()) == 4, one)
            async with subscribed("b") as other:
                await until(lambda: (len(one.assignment()), len(other.assignment())) == (2, 2), one, other)
                assert not one.assignment() & other.assignment()
                for partition in range(4):
                    put(node, topic, numbers(0, 50), partition=partition)
                async with asyncio.timeout(within(20)):
                    while len(seen) < 150:
                        for consumer in (one, other):
                            seen += [(r.partition, r.value) for r in await consumer.poll(10, timeout_ms=20)]
            seen += [(r.partition, r.value) for r in await read(one, 200 - len(seen))]
            assert len(one.assignment()) == 4
        assert sorted(seen) == sorted((p, value) for p in range(4) for value in numbers(0, 50))
        assert ("a", "got", 4) in told
        assert ("b", "gave", 2) in told

    run(main())


def test_partitions_are_given_up_only_when_the_application_is_back(node: EmbeddedBroker) -> None:
    async def main() -> None:
        await create(node, "back", 2)
        for partition in range(2):
            put(node, "back", numbers(0, 10), partition=partition)
        async with consumer_of(node, "back", group_id="back") as one:
            at_work = await one.poll(max_records=4)
            assert len(at_work) == 4
            async with consumer_of(node, "back", group_id="back") as other:
                await other.poll(timeout_ms=300)
                assert other.assignment() == frozenset()  # the first one still works on what it was given
                rest: list[tuple[int, int]] = []
                async with asyncio.timeout(within(20)):
                    while len(rest) < 16:
                        for consumer in (one, other):
                            rest += [(r.partition, r.offset) for r in await consumer.poll(timeout_ms=20)]
                done = [(r.partition, r.offset) for r in at_work]
                assert sorted(done + rest) == [(p, o) for p in range(2) for o in range(10)]

    run(main())


def test_a_callback_may_say_where_to_begin(node: EmbeddedBroker) -> None:
    put(node, "begin", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, group_id="begin") as consumer:

            def begin(partitions: list[TopicPartition]) -> None:
                for tp in partitions:
                    consumer.seek(tp, 7)

            consumer.subscribe("begin", on_assigned=begin)
            assert await values(consumer, 3) == numbers(7, 10)

    run(main())


def test_a_callback_that_fails_is_raised_by_the_poll(node: EmbeddedBroker) -> None:
    put(node, "raises", numbers(0, 1))

    async def main() -> None:
        async with consumer_of(node, group_id="raises") as consumer:
            consumer.subscribe("raises", on_assigned=lambda partitions: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await read(consumer, 1)
            assert await values(consumer, 1) == [b"0"]

    run(main())


@protocols
def test_a_pattern_follows_topics(node: EmbeddedBroker, protocol: str) -> None:
    put(node, f"{protocol}-log-a", [b"a"])

    async def main() -> None:
        group = {"group_id": f"pattern-{protocol}", "group_protocol": protocol}
        async with consumer_of(node, metadata_max_age_ms=100, **group) as consumer:
            consumer.subscribe(pattern=f"{protocol}-log-.*")
            assert await values(consumer, 1) == [b"a"]

    run(main())


@protocols
def test_a_topic_that_is_deleted_holds_up_no_other(node: EmbeddedBroker, protocol: str) -> None:
    """What was read of it cannot be committed any more. Nobody waits for that, and other positions are stored."""
    kept, gone = f"{protocol}-doomed-kept", f"{protocol}-doomed-gone"
    put(node, kept, numbers(0, 5))
    put(node, gone, numbers(0, 5))

    async def main() -> None:
        group = {"group_id": f"doomed-{protocol}", "group_protocol": protocol}
        async with consumer_of(node, metadata_max_age_ms=100, auto_commit_interval_ms=600_000, **group) as consumer:
            consumer.subscribe(pattern=f"{protocol}-doomed-.*")
            await read(consumer, 10)
            assert await consumer.poll(timeout_ms=1) == []
            await delete(node, gone)
            await until(lambda: {tp.topic for tp in consumer.assignment()} == {kept}, consumer)
            put(node, kept, numbers(5, 10))
            assert await values(consumer, 5) == numbers(5, 10)
        assert await committed(node, group["group_id"], kept) == 10

    run(main())


@protocols
def test_an_automatic_commit_does_not_wait_for_a_topic_that_was_deleted(node: EmbeddedBroker, protocol: str) -> None:
    kept, gone = f"{protocol}-lost-kept", f"{protocol}-lost-gone"
    put(node, kept, numbers(0, 5))
    put(node, gone, numbers(0, 5))

    async def main() -> None:
        # Nobody hears of the deletion before the commit does.
        group = {"group_id": f"lost-{protocol}", "group_protocol": protocol, "auto_commit_interval_ms": 600_000}
        calm = {"heartbeat_interval_ms": 600_000, "session_timeout_ms": 1_800_000} if protocol == "classic" else {}
        async with consumer_of(node, kept, gone, metadata_max_age_ms=600_000, **group, **calm) as consumer:
            await read(consumer, 10)
            assert await consumer.poll(timeout_ms=1) == []
            await delete(node, gone)
            async with asyncio.timeout(within(20)):
                await consumer.close()
        assert await committed(node, group["group_id"], kept) == 5

    run(main())


def test_who_leaves_a_group_can_join_again(node: EmbeddedBroker) -> None:
    put(node, "again", numbers(0, 10))

    async def main() -> None:
        async with consumer_of(node, "again", group_id="again") as consumer:
            assert await values(consumer, 4) == numbers(0, 4)
            await consumer.unsubscribe()
            assert consumer.assignment() == frozenset()
            assert await consumer.poll(timeout_ms=20) == []
            consumer.subscribe("again")
            assert await values(consumer, 6) == numbers(4, 10)

    run(main())


def test_a_commit_for_a_group_that_has_others_is_refused(node: EmbeddedBroker) -> None:
    put(node, "others", numbers(0, 3))

    async def main() -> None:
        async with consumer_of(node, "others", group_id="others") as member:
            await read(member, 1)
            async with consumer_of(node, group_id="others", auto_commit=False) as stranger:
                with pytest.raises(CommitFailed):
                    await stranger.commit({("others", 0): 2})

    run(main())
