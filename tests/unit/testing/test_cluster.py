"""A cluster inside the test process: nodes killed, stopped, brought back and added under foreign clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing import EmbeddedCluster, cluster
from tests.patience import within

QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def three() -> Iterator[EmbeddedCluster]:
    with cluster(nodes=3) as running:
        yield running


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(within(30))


def put(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(within(30)) == 0


def get(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "any", "enable.auto.commit": False, **QUIET})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [record.value() or b"" for record in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def test_a_leader_is_killed_and_nothing_is_lost(three: EmbeddedCluster) -> None:
    create(three.bootstrap_servers, "kept")
    put(three.bootstrap_servers, "kept", b"1", b"2")
    three.wait_until_in_sync("kept")
    leader = three.leader_of("kept", 0)
    three.kill(leader)
    put(three.bootstrap_servers, "kept", b"3")
    assert three.leader_of("kept", 0) != leader
    three.start(leader)
    three.wait_until_in_sync("kept")
    assert sorted(three.isr_of("kept", 0)) == [1, 2, 3]
    assert get(three.bootstrap_servers, "kept", 3) == [b"1", b"2", b"3"]


def test_the_controller_is_killed_and_another_one_leads(three: EmbeddedCluster) -> None:
    before = three.controller
    three.kill(before)
    assert three.controller != before
    create(three.bootstrap_servers, "made-without-it")
    three.start(before)
    three.wait_until_in_sync()


def test_a_clean_restart_hands_over(three: EmbeddedCluster) -> None:
    create(three.bootstrap_servers, "handed")
    leader = three.leader_of("handed", 0)
    three.stop(leader)
    assert three.leader_of("handed", 0) != leader
    three.start(leader)
    three.wait_until_in_sync("handed")


def test_a_node_that_is_not_there_is_told(three: EmbeddedCluster) -> None:
    with pytest.raises(ValueError, match="there is no node 9; there are 1, 2, 3"):
        three.kill(9)


def test_time_moves_for_all(three: EmbeddedCluster) -> None:
    before = three.clock.now_ms()
    three.advance(minutes=10)
    assert three.clock.now_ms() - before >= 600_000
    create(three.bootstrap_servers, "later")
    put(three.bootstrap_servers, "later", b"1")
    three.nodes[1].advance(seconds=1)


def test_a_fourth_node_joins() -> None:
    with cluster(nodes=1, settings={"default.replication.factor": 1}) as growing:
        added = growing.add()
        assert added == 2
        create(growing.bootstrap_servers, "over-both", 2)
        assert {growing.leader_of("over-both", 0), growing.leader_of("over-both", 1)} == {1, 2}


def test_a_cluster_has_nodes() -> None:
    with pytest.raises(ValueError, match="at least one node"), cluster(nodes=0):
        pass
