"""A topic is trimmed, deleted and made anew under its name, and nodes are killed before they write a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.compat.cluster import PenstockCluster
from tests.compat.processes import wait_for
from tests.faults.cluster.replicas import assert_identical

TOPIC, RECORDS_BEFORE, TRIMMED_TO, RECORDS_SINCE = "orders", 1_000, 900, 100
# Long enough that no checkpoint comes between the deletion and the kill.
CHECKPOINT_MS = 6_000


def produce(cluster: PenstockCluster, word: str, count: int) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(count):
        producer.produce(
            TOPIC, f"{word} {number}".encode(), partition=0, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(60) == 0
    assert failures == [None] * count


def read(cluster: PenstockCluster) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.partition.eof": True, "log_level": 0,
         "auto.offset.reset": "earliest"}
    )  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes] = []
    try:
        while True:
            record = consumer.poll(60)
            assert record is not None, f"nothing more came after {len(values)} records"
            if record.error():
                return values
            values.append(record.value() or b"")
    finally:
        consumer.close()


def trimmed_and_written_down(cluster: PenstockCluster) -> bool:
    line = f"{TOPIC} 0 {TRIMMED_TO}"
    paths = [node.data_dir / "log-start-offset-checkpoint" for node in cluster.nodes.values()]
    return all(path.exists() and line in path.read_text().splitlines() for path in paths)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("whom", ["the leader", "all"])
def test_records_of_a_topic_made_anew_outlive_a_kill(tmp_path: Path, whom: str) -> None:
    properties = {"log.flush.start.offset.checkpoint.interval.ms": str(CHECKPOINT_MS)}
    with PenstockCluster(tmp_path, 3, properties=properties) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        cluster.new_topic(TOPIC)
        produce(cluster, "old", RECORDS_BEFORE)
        admin.delete_records([TopicPartition(TOPIC, 0, TRIMMED_TO)])[TopicPartition(TOPIC, 0)].result(60)
        wait_for("the new start in every checkpoint", lambda: trimmed_and_written_down(cluster), timeout_s=60)
        admin.delete_topics([TOPIC])[TOPIC].result(60)
        cluster.new_topic(TOPIC)
        produce(cluster, "new", RECORDS_SINCE)
        victims = [cluster.leader_of(TOPIC)] if whom == "the leader" else list(cluster.nodes)
        for node_id in victims:
            cluster.nodes[node_id].kill()
        cluster.launch(*victims)
        cluster.wait_until_serving(*victims)
        cluster.wait_until_whole()
        assert read(cluster) == [f"new {number}".encode() for number in range(RECORDS_SINCE)]
        cluster.stop()
        homes = {node.node_id: node.data_dir for node in cluster.nodes.values()}
        assert assert_identical(homes, TOPIC, 0) == RECORDS_SINCE
        for home in homes.values():
            assert f"{TOPIC} 0 " not in (home / "log-start-offset-checkpoint").read_text()
