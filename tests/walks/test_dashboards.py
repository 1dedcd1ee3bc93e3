"""What public dashboards ask for is on the pages of a cluster that is used: names and labels, in valid text.

The lists are of the names that strimzi-kafka.json, strimzi-kraft.json and strimzi-kafka-exporter.json (of the Strimzi
operator's examples) and kafka_exporter's overview (Grafana 7589) query.
"""

from __future__ import annotations

import csv
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing import cluster
from tests.patience import wait_for, within
from tests.walks.prometheus_text import Found, samples

PARTITIONS = 6
RECORDS = 60
COMMITTED = 4

ABSENT = {
    # Kubernetes tells these of any container; no Kafka does.
    "container_cpu_usage_seconds_total",
    "container_memory_usage_bytes",
    "kubelet_volume_stats_available_bytes",
}


class Asked(NamedTuple):
    metric: str
    labels: set[str]
    by_broker: bool
    dashboards: list[str]


def asked() -> list[Asked]:
    with (Path(__file__).parent / "dashboards.tsv").open() as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return [
        Asked(metric, {*labels.split(",")} - {"-"}, teller == "broker", dashboards.split(","))
        for metric, labels, teller, dashboards in rows
    ]


def scrape(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=within(30)) as reply:
        return str(reply.read().decode())


@pytest.fixture(scope="module")
def told() -> Iterator[dict[int, list[Found]]]:
    """The samples of each of three nodes, of a topic that is written, read, and committed by a group."""
    with cluster(nodes=3, settings={"offsets.topic.num.partitions": 3}) as running:
        servers = running.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for made in admin.create_topics([NewTopic("orders", PARTITIONS, 3)]).values():
            made.result(within(30))
        running.wait_until_in_sync("orders")
        producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
        for number in range(RECORDS):
            producer.produce("orders", b"x" * 100, partition=number % PARTITIONS)
        assert producer.flush(within(60)) == 0
        reader = Consumer(
            {"bootstrap.servers": servers, "group.id": "readers", "enable.auto.commit": False, "log_level": 0}
        )
        reader.assign([TopicPartition("orders", index, 0) for index in range(PARTITIONS)])
        assert len(reader.consume(RECORDS, timeout=within(60))) == RECORDS
        ends = [TopicPartition("orders", index, COMMITTED) for index in range(PARTITIONS)]
        reader.commit(offsets=ends, asynchronous=False)
        reader.close()
        pages: dict[int, list[Found]] = {}

        def lags_known() -> bool:
            # On a busy machine a leader may take longer to tell its ends than a page waits.
            pages.update({node_id: samples(scrape(node.admin_url)) for node_id, node in running.nodes.items()})
            return total(pages, "penstock_metrics_left_out", of="group lags") == 0

        wait_for("all leaders to tell where their logs end", lags_known, timeout_s=30)
        yield pages


@pytest.mark.parametrize("dashboard", sorted({each for row in asked() for each in row.dashboards}))
def test_nine_in_ten_names_that_a_dashboard_asks_for_are_there(told: dict[int, list[Found]], dashboard: str) -> None:
    there: dict[str, set[str]] = {}
    for sample in (sample for page in told.values() for sample in page):
        there.setdefault(sample.name, set()).update(sample.labels)
    wanted = [row for row in asked() if dashboard in row.dashboards]
    missing = {row.metric for row in wanted if not row.labels <= there.get(row.metric, {"nothing"}) - {"nothing"}}
    missing |= {row.metric for row in wanted if row.metric not in there}
    assert missing <= ABSENT, "what is not there has a reason"
    ours = [row for row in wanted if row.by_broker]
    assert sum(row.metric not in missing for row in ours) >= 0.9 * len(ours)


def total(told: dict[int, list[Found]], name: str, **labels: str) -> float:
    return sum(
        sample.value
        for page in told.values()
        for sample in page
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_sums_over_all_nodes_count_everything_once(told: dict[int, list[Found]]) -> None:
    assert total(told, "kafka_topic_partition_current_offset", topic="orders") == RECORDS
    assert total(told, "kafka_topic_partitions", topic="orders") == PARTITIONS
    assert total(told, "kafka_topic_partition_replicas", topic="orders") == 3 * PARTITIONS
    assert total(told, "kafka_topic_partition_in_sync_replica", topic="orders") == 3 * PARTITIONS
    assert total(told, "kafka_brokers") == 3
    assert total(told, "kafka_broker_info") == 3
    assert total(told, "kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == RECORDS
    written = total(told, "kafka_server_brokertopicmetrics_bytesin_total", topic="orders")
    assert total(told, "kafka_server_brokertopicmetrics_bytesout_total", topic="orders") >= written
    assert total(told, "kafka_server_brokertopicmetrics_replicationbytesin_total") >= 2 * written


def test_the_leader_of_the_quorum_appends_and_commits_and_the_others_fetch(told: dict[int, list[Found]]) -> None:
    raft, channel = "kafka_server_raftmetrics_", "kafka_server_raftchannelmetrics_"
    states = {
        node_id: each.labels["current_state"]
        for node_id, page in told.items()
        for each in page
        if each.name == raft + "current_state"
    }
    assert sorted(states.values()) == ["follower", "follower", "leader"]
    leader = {node_id: page for node_id, page in told.items() if states[node_id] == "leader"}
    others = {node_id: page for node_id, page in told.items() if states[node_id] == "follower"}
    assert total(leader, raft + "append_records_rate") > 0
    assert total(leader, raft + "commit_latency_avg") > 0
    assert total(others, raft + "append_records_rate") == total(leader, raft + "fetch_records_rate") == 0
    for node_id, page in others.items():
        own = {node_id: page}
        assert total(own, raft + "fetch_records_rate") > 0
        assert total(own, channel + "incoming_byte_total") > total(own, channel + "response_total") > 0


def test_every_partition_is_told_of_by_its_leader(told: dict[int, list[Found]]) -> None:
    leaders = [
        (int(sample.labels["partition"]), node_id, sample.value)
        for node_id, page in told.items()
        for sample in page
        if sample.name == "kafka_topic_partition_leader" and sample.labels["topic"] == "orders"
    ]
    assert sorted(index for index, _, _ in leaders) == list(range(PARTITIONS))
    assert all(leader == node_id for _, node_id, leader in leaders)


def test_the_coordinator_tells_lags_of_partitions_that_others_lead(told: dict[int, list[Found]]) -> None:
    coordinators = {
        node_id for node_id, page in told.items() for sample in page if sample.name == "kafka_consumergroup_lag"
    }
    assert len(coordinators) == 1
    per_partition = RECORDS // PARTITIONS
    page = next(told[node_id] for node_id in coordinators)
    lags = {sample.labels["partition"]: sample.value for sample in page if sample.name == "kafka_consumergroup_lag"}
    assert lags == {str(index): per_partition - COMMITTED for index in range(PARTITIONS)}
    assert total(told, "kafka_consumergroup_lag_sum", consumergroup="readers", topic="orders") == sum(lags.values())
    assert total(told, "kafka_consumergroup_current_offset", consumergroup="readers") == PARTITIONS * COMMITTED
    assert total(told, "kafka_consumergroup_current_offset_sum", topic="orders") == PARTITIONS * COMMITTED
    assert total(told, "penstock_metrics_left_out") == 0
