"""A query's offsets as those of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock import Admin, blocking
from penstock.blocking import Consumer, Producer
from penstock.model.ids import TopicPartition
from penstock.spark.offsets import EARLIEST
from penstock.spark.progress.groups import Commit, commit_offsets, publish_offsets
from penstock.testing import EmbeddedBroker, broker


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        with blocking.Admin(bootstrap_servers=found.bootstrap_servers) as admin:
            admin.create_topic("orders", 2)
        with Producer(bootstrap_servers=found.bootstrap_servers) as producer:
            for _ in range(5):
                producer.send("orders", b"v", partition=0)
            producer.flush()
        yield found


def settings(running: EmbeddedBroker) -> dict[str, str]:
    return {"bootstrap_servers": running.bootstrap_servers, "isolation_level": "read_committed"}


def test_a_querys_place_is_an_empty_group_with_lag(running: EmbeddedBroker) -> None:
    places = {TopicPartition("orders", 0): 3, TopicPartition("orders", 1): EARLIEST}
    assert publish_offsets(settings(running), "shop", places)
    with blocking.Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        (lag,) = admin.group_lag("spark-shop")
        group = admin.describe_group("spark-shop")
    assert (lag.topic, lag.partition, lag.committed, lag.end, lag.lag) == ("orders", 0, 3, 5, 2)
    assert (group.state, group.members) == ("Empty", [])


def test_lag_of_what_reads_committed_ends_at_the_first_open_transaction(running: EmbeddedBroker) -> None:
    place = {TopicPartition("held", 0): 0}
    with Producer(bootstrap_servers=running.bootstrap_servers, transactional_id="held") as producer:
        with producer.transaction():
            producer.send("held", b"v", partition=0)
        producer.begin()
        producer.send("held", b"open", partition=0).result()
        assert publish_offsets(settings(running), "careful", place)
        assert publish_offsets({**settings(running), "isolation_level": "read_uncommitted"}, "greedy", place)
        with blocking.Admin(bootstrap_servers=running.bootstrap_servers) as admin:
            (careful,), (greedy,) = admin.group_lag("spark-careful"), admin.group_lag("spark-greedy")
            (told,) = admin.group_lag("spark-greedy", read_committed=True)
        assert (careful.end, careful.lag) == (told.end, told.lag) == (2, 2)
        assert (greedy.end, greedy.lag) == (3, 3)
        producer.abort()


def test_whoever_is_late_does_not_move_a_group_back(running: EmbeddedBroker) -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert publish_offsets(settings(running), "late", {first: 3})

    async def commit() -> Commit:
        async with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
            return await commit_offsets(admin, "late", {first: 2, second: 0}, forward_only=True)

    assert asyncio.run(commit()) is Commit.DONE
    with blocking.Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        assert {tp: at.offset for tp, at in admin.group_offsets("spark-late").items()} == {first: 3, second: 0}


def test_a_group_of_real_consumers_is_left_to_them(running: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    with Consumer("orders", bootstrap_servers=running.bootstrap_servers, group_id="spark-taken") as consumer:
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        assert not publish_offsets(settings(running), "taken", {TopicPartition("orders", 0): 3})
        assert not publish_offsets(settings(running), "taken", {TopicPartition("orders", 0): 4})
    told = [record.message for record in caplog.records]
    assert len([words for words in told if "has members of its own" in words]) == 1


def test_a_broker_that_is_away_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    for offset in (1, 2):
        assert not publish_offsets({"bootstrap_servers": "127.0.0.1:1"}, "alone", {TopicPartition("t", 0): offset})
    assert len([record for record in caplog.records if "publishProgress=false" in record.message]) == 1
