"""What the tools say of the node itself: log directories, features, the quorum, API versions, the cluster."""

from __future__ import annotations

import json
import re

import pytest

from tests.compat.apache.tools import Tools
from tests.compat.node import Node

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

CLUSTER_ID = r"[\w-]{22}"


def test_log_dirs_lists_each_partition_with_its_size(tools: Tools, node: Node, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    produce = ("--topic", topic, "--num-records", "100", "--record-size", "100", "--throughput", "-1")
    tools.run("kafka-producer-perf-test", *produce)
    lines = tools.run("kafka-log-dirs", "--describe", "--topic-list", topic, "--broker-list", "1").lines()
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    (broker,) = json.loads(lines[2])["brokers"]
    (directory,) = broker["logDirs"]
    assert (broker["broker"], directory["logDir"], directory["error"]) == (1, str(node.data_dir), None)
    stored = {
        f"{topic}-{index}": sum(file.stat().st_size for file in (node.data_dir / f"{topic}-{index}").glob("*.log"))
        for index in range(2)
    }
    assert {each["partition"]: each["size"] for each in directory["partitions"]} == stored
    assert sum(stored.values()) > 10_000
    assert all(each["offsetLag"] == 0 and not each["isFuture"] for each in directory["partitions"])


def test_features_name_what_is_finalized(tools: Tools, judged_is_apache: bool) -> None:
    lines = tools.run("kafka-features", "describe").lines()
    features = {}
    for line in lines:
        match = re.match(
            r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)\s"
            r"+Epoch: (\d+)$",
            line,
        )
        assert match, line
        features[match[1]] = match.group(2, 3, 4)
    assert features["metadata.version"] == ("3.3-IV3", "4.3-IV0", "4.3-IV0")
    assert features["kraft.version"] == ("0", "1", "1")
    assert features["eligible.leader.replicas.version"] == ("0", "1", "1")
    assert features["group.version"] == ("0", "1", "1")
    assert features["transaction.version"] == ("0", "2", "2")
    # What is not served yet is not finalized, so that clients keep to the older flows.
    unserved = {"share.version", "streams.version"} & features.keys()
    assert judged_is_apache or {features[name][2] for name in unserved} <= {"0"}


def test_the_quorum_is_one_leader_that_is_a_voter(tools: Tools, node: Node) -> None:
    status = dict(line.split(":", 1) for line in tools.run("kafka-metadata-quorum", "describe", "--status").lines())
    status = {name: value.strip() for name, value in status.items()}
    assert re.fullmatch(CLUSTER_ID, status["ClusterId"])
    assert (status["LeaderId"], status["MaxFollowerLag"], status["MaxFollowerLagTimeMs"]) == ("1", "0", "0")
    assert int(status["LeaderEpoch"]) >= 1
    assert int(status["HighWatermark"]) > 0
    (voter,) = json.loads(status["CurrentVoters"])
    assert voter["id"] == 1
    assert voter["endpoints"] == [f"CONTROLLER://127.0.0.1:{node.controller_port}"]
    assert f"directory.id={voter['directoryId']}" in (node.data_dir / "meta.properties").read_text().splitlines()
    assert status["CurrentObservers"] == "[]"


def test_the_quorums_replication_shows_one_leader_without_lag(tools: Tools) -> None:
    heading, row = (line.split() for line in tools.run("kafka-metadata-quorum", "describe", "--replication").lines())
    assert heading[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    fields = dict(zip(heading, row, strict=True))
    assert (fields["NodeId"], fields["Lag"], fields["Status"]) == ("1", "0", "Leader")
    assert int(fields["LogEndOffset"]) > 0


# What a node serves before groups, transactions and security do, in the ranges of 4.3.
SERVED = {
    "Produce(0)": "0 to 13",
    "Fetch(1)": "4 to 18",
    "ListOffsets(2)": "1 to 11",
    "Metadata(3)": "0 to 13",
    "FindCoordinator(10)": "0 to 6",
    "ApiVersions(18)": "0 to 4",
    "CreateTopics(19)": "2 to 7",
    "DeleteTopics(20)": "1 to 6",
    "DeleteRecords(21)": "0 to 2",
    "InitProducerId(22)": "0 to 5",
    "OffsetForLeaderEpoch(23)": "2 to 4",
    "DescribeConfigs(32)": "1 to 4",
    "AlterConfigs(33)": "0 to 2",
    "AlterReplicaLogDirs(34)": "1 to 2",
    "DescribeLogDirs(35)": "1 to 5",
    "CreatePartitions(37)": "0 to 3",
    "IncrementalAlterConfigs(44)": "0 to 1",
    "DescribeQuorum(55)": "0 to 2",
    "UpdateFeatures(57)": "0 to 2",
    "DescribeCluster(60)": "0 to 2",
    "DescribeProducers(61)": "0",
    "DescribeTopicPartitions(75)": "0",
}


def test_api_versions_are_those_of_kafka(tools: Tools, bootstrap: str) -> None:
    heading, *rows, closing = tools.run("kafka-broker-api-versions").lines()
    assert (heading, closing) == (f"{bootstrap} (id: 1 rack: null isFenced: false) -> (", ")")
    ranges = {name: span.partition(" [")[0] for name, span in (row.strip(" \t,").split(": ", 1) for row in rows)}
    assert {name: ranges[name] for name in SERVED} == SERVED
    assert ranges["GetTelemetrySubscriptions(71)"] == "UNSUPPORTED"


def test_the_cluster_has_an_id_and_one_unfenced_broker(tools: Tools, node: Node) -> None:
    (line,) = tools.run("kafka-cluster", "cluster-id").lines()
    assert re.fullmatch(f"Cluster ID: {CLUSTER_ID}", line)
    assert f"cluster.id={line.split()[-1]}" in (node.data_dir / "meta.properties").read_text().splitlines()
    _heading, broker = tools.run("kafka-cluster", "list-endpoints").lines()
    assert broker.split() == ["1", "127.0.0.1", str(node.port), "null", "unfenced", "broker"]
