"""What the metrics page tells of partitions, replication, traffic and disks."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from itertools import chain

import pytest

from penstock.kernels import read_header
from penstock.model.ids import Uuid
from penstock.protocol.disk.metadata_topics import RemoveTopicRecord
from penstock.server.metrics import node_metrics
from penstock.server.metrics.http_admin import AdminServer
from penstock.server.metrics.node_metrics import (
    directory_samples,
    partition_samples,
    producer_samples,
    replication_samples,
    traffic_samples,
)
from penstock.server.metrics.page import Metrics
from penstock.server.partitions.following.watch import STILL_MS, FollowerWatch
from penstock.server.partitions.hosted import Guard
from penstock.server.partitions.topic_traffic import Traffic
from tests.walks.data_plane import batch_of
from tests.walks.houses import TOPIC, TOPIC_ID, House, Street, walk
from tests.walks.prometheus_text import Found, samples

MANAGER = "kafka_server_replicamanager_"
TRAFFIC = "kafka_server_brokertopicmetrics_"


def metrics_of(house: House, watch: FollowerWatch | None = None) -> Metrics:
    metrics, partitions = Metrics(), house.partitions
    watched = watch or FollowerWatch(house.clock, partitions.neighbours)
    metrics.register("partitions", lambda: partition_samples(partitions))
    metrics.register("replication", lambda: replication_samples(partitions, house.isr, watched))
    metrics.register("traffic", lambda: traffic_samples(partitions, house.produces, house.fetches))
    metrics.register("directories", lambda: directory_samples(house.store))
    return metrics


def told_by(house: House, watch: FollowerWatch | None = None) -> list[Found]:
    return samples(metrics_of(house, watch).page())


def value(told: list[Found], name: str, **labels: str) -> float:
    (found,) = [each.value for each in told if each.name == name and each.labels == labels]
    return found


def counts(street: Street, node: int) -> dict[str, float]:
    return {each.name.removeprefix(MANAGER): each.value for each in told_by(street[node]) if not each.labels}


def test_a_leader_counts_what_lacks_replicas_and_a_follower_does_not() -> None:
    async def steps(street: Street) -> None:
        await street.create(4, min_insync_replicas="2")
        for partition, isr in enumerate(([1, 2, 3], [1, 2], [1])):
            street.change(partition, isr=isr)
        await street.publish()
        told = counts(street, 1)
        assert (told["leadercount"], told["partitioncount"]) == (4, 4)
        assert (told["underreplicatedpartitions"], told["underminisrpartitioncount"]) == (2, 1)
        assert told["atminisrpartitioncount"] == 1
        following = counts(street, 2)
        assert (following["leadercount"], following["underreplicatedpartitions"]) == (0, 0)

    walk(steps)


def test_changes_of_in_sync_sets_and_the_latest_follower_are_told() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1, 3))
        leader = street[1]
        leader.fetch(0, replica=2)
        leader.fetch(0, replica=3)
        await street.until(lambda: leader.isr.expands == 1)
        for _ in range(3):
            await leader.produce(acks=1)
        leader.fetch(3, replica=3)
        told = counts(street, 1)
        assert (told["isrexpands_total"], told["isrshrinks_total"], told["failedisrupdates_total"]) == (1, 0, 0)
        assert told["penstock_replica_lag_offsets_max"] == 3

    walk(steps)


def test_the_leader_tells_of_a_partition_and_every_replica_of_its_bytes() -> None:
    async def steps(street: Street) -> None:
        await street.create(2, min_insync_replicas="2")
        street.change(0, isr=[1, 2])
        await street.publish()
        await street[1].produce(0, acks=1)
        at = {"topic": TOPIC, "partition": "0"}
        told = told_by(street[1])
        for name, number in {
            "kafka_topic_partition_leader": 1,
            "kafka_topic_partition_leader_is_preferred": 1,
            "kafka_topic_partition_replicas": 3,
            "kafka_topic_partition_in_sync_replica": 2,
            "kafka_topic_partition_under_replicated_partition": 1,
            "kafka_cluster_partition_replicascount": 3,
            "kafka_cluster_partition_atminisr": 1,
            "kafka_cluster_partition_underminisr": 0,
            "kafka_log_log_numlogsegments": 1,
        }.items():
            assert value(told, name, **at) == number, name
        following = {each.name for each in told_by(street[2]) if each.labels == at}
        assert following == {"kafka_log_log_size", "kafka_log_log_numlogsegments"}

    walk(steps)


def test_open_transactions_are_told_by_how_far_they_hold_readers_back_and_when_they_are_late() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        leader, clock = street[1], street.clock
        for producer in (7, 8):
            batch = bytearray(
                batch_of(
                    b"x", producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True,
                    timestamp=clock.now_ms(),
                )
            )  # fmt: skip
            guard = Guard(None, verifies=False)
            leader.hosted().append_transactional(batch, read_header(batch), 1, clock.now_ms(), guard)
        for follower in (2, 3):
            leader.fetch(2, replica=follower)
        at = {"topic": TOPIC, "partition": "0"}
        assert value(told_by(leader), "kafka_cluster_partition_laststableoffsetlag", **at) == 2

        def told(node: int) -> tuple[float, float]:
            metrics = Metrics()
            metrics.register("producers", lambda: producer_samples(street[node].partitions, clock, lambda: 900_000))
            found = samples(metrics.page())
            late = MANAGER + "partitionswithlatetransactionscount"
            return value(found, MANAGER + "produceridcount"), value(found, late)

        clock.advance(900_000 + node_metrics.LATE_MS)
        assert told(1) == (2, 0)
        clock.advance(1)
        assert told(1) == (2, 1), "by partition, not by transaction"
        assert told(2) == (0, 0)

    walk(steps)


def test_a_leader_that_is_not_the_first_replica_says_so() -> None:
    async def steps(street: Street) -> None:
        await street.create(leader=2)
        at = {"topic": TOPIC, "partition": "0"}
        assert value(told_by(street[2]), "kafka_topic_partition_leader_is_preferred", **at) == 0

    walk(steps)


def test_traffic_is_told_by_topic_and_in_all() -> None:
    async def steps(street: Street) -> None:
        await street.create(2, min_insync_replicas="2")
        leader = street[1]
        for _ in range(3):
            await leader.produce(0, 1, acks=1)
        leader.fetch(3, partition=0, replica=2)
        leader.fetch(3, partition=0, replica=3)
        await leader.fetch(0, partition=0)
        await leader.fetch(9, partition=0)
        street.change(0, isr=[1])
        await street.publish()
        await leader.produce(0, acks=-1)
        told = told_by(leader)
        for labels in ({"topic": TOPIC}, {}):
            assert value(told, TRAFFIC + "messagesin_total", **labels) == 6
            assert value(told, TRAFFIC + "totalproducerequests_total", **labels) == 6
            assert value(told, TRAFFIC + "failedproducerequests_total", **labels) == 1
            assert value(told, TRAFFIC + "totalfetchrequests_total", **labels) == 2
            assert value(told, TRAFFIC + "failedfetchrequests_total", **labels) == 1
            read, written = (value(told, TRAFFIC + name, **labels) for name in ("bytesout_total", "bytesin_total"))
            assert 2 * read == written

    walk(steps)


def test_a_topic_that_goes_takes_its_series_along_and_the_sums_stay() -> None:
    async def steps(street: Street) -> None:
        await street.create(2)
        leader = street[1]
        await leader.produce(0, acks=1)
        street.apply(RemoveTopicRecord(topic_id=TOPIC_ID))
        await street.publish()
        told = told_by(leader)
        assert value(told, TRAFFIC + "messagesin_total") == 1
        assert [each for each in told if each.labels.get("topic")] == []

    walk(steps)


def test_a_topic_counts_on_while_one_of_its_partitions_is_here() -> None:
    traffic, topic_id = Traffic(), Uuid(b"t" * 16)
    first, second = traffic.taken_up(topic_id, "t"), traffic.taken_up(topic_id, "t")
    assert first is second
    first.records_in += 5
    traffic.dropped(topic_id)
    assert [each.records_in for each in traffic] == [5], "a counter must not fall when a partition moves away"
    traffic.dropped(topic_id)
    assert (list(traffic), traffic.past().records_in) == ([], 5)


def test_a_follower_that_is_behind_and_does_not_move_is_counted_while_its_broker_lives() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1, 3))
        leader = street[1]
        watch = FollowerWatch(leader.clock, leader.partitions.neighbours)

        def still() -> float:
            return value(told_by(leader, watch), "penstock_followers_still")

        for _ in range(5):
            await leader.produce(acks=1)
        leader.fetch(2, replica=2)
        assert still() == 0
        leader.clock.advance(STILL_MS - 1)
        assert still() == 0
        leader.clock.advance(1)
        assert still() == 1, "it has lacked the same three records for a minute"
        leader.fetch(3, replica=2)
        assert still() == 0, "it moves"
        leader.clock.advance(STILL_MS)
        assert still() == 1
        street.register(2, fenced=True)
        await street.publish()
        assert still() == 0, "its broker is down, which others tell"

    walk(steps)


def test_room_of_log_directories_is_told_while_they_are_online() -> None:
    async def steps(street: Street) -> None:
        house = street[1]
        files = house.store.files
        files.capacity_bytes = 1_000_000  # type: ignore[attr-defined]  # they are in memory
        at = {"directory": "/data"}
        told = told_by(house)
        assert value(told, "penstock_log_directory_total_bytes", **at) == 1_000_000
        assert 0 < value(told, "penstock_log_directory_free_bytes", **at) < 1_000_000
        assert value(told, "penstock_log_directory_online", **at) == 1
        house.store.fail(house.store.directories[0], "broken")
        told = told_by(house)
        assert value(told, "penstock_log_directory_online", **at) == 0
        assert "penstock_log_directory_free_bytes" not in {each.name for each in told}

    walk(steps)


def test_more_partitions_than_fit_on_a_page_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_metrics, "SERIES_MAX", 3)

    async def steps(street: Street) -> None:
        await street.create(5)
        told = told_by(street[1])
        offsets = [each for each in told if each.name == "kafka_topic_partition_current_offset"]
        assert [each.labels["partition"] for each in offsets] == ["0", "1", "2"]
        assert value(told, "penstock_metrics_left_out", of="partitions") == 2
        assert value(told, MANAGER + "leadercount") == 5

    walk(steps)


@pytest.fixture
def no_collections() -> Iterator[None]:
    """A node's process has tuned the collector; here it would look through everything that all tests have made."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
def test_ten_thousand_partitions_do_not_hold_the_loop() -> None:
    """By the processor's time: a machine that is busy with something else is not what is measured."""

    async def steps(street: Street) -> None:
        await street.create(2_500)
        metrics, partitions, loop = metrics_of(street[1]), street[1].partitions, asyncio.get_running_loop()
        metrics.register("partitions", lambda: chain(*(partition_samples(partitions) for _ in range(4))))
        making = loop.create_task(AdminServer(loop, metrics, health=list, readiness=list)._metrics_page())
        held_ms = []
        while not making.done():
            before = time.thread_time()
            await asyncio.sleep(0)
            held_ms.append((time.thread_time() - before) * 1_000)
        assert sum(map(len, making.result().body)) > 10_000 * len(node_metrics.LED) * 50
        assert max(held_ms) < 20

    walk(steps, houses=1)
