"""Kafka's tools for clusters against three nodes: placement, moves, elections, the quorum, brokers, files.

The nodes are shared; a test that stops or moves something leaves the cluster whole. `--target apache` judges the tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compat.apache.tools import Tools, java_command, run_tool
from tests.compat.cluster import ApacheCluster, Cluster, Partition, PenstockCluster
from tests.compat.processes import Child, wait_for
from tests.compat.test_files import metadata_snapshots

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

# Snapshots and segments come early, so that there are several of each.
EARLY = {"metadata.log.max.record.bytes.between.snapshots": "2000", "log.segment.bytes": "1048576"}


@pytest.fixture(scope="module")
def three(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    kind = ApacheCluster if pytestconfig.getoption("--target") == "apache" else PenstockCluster
    with kind(tmp_path_factory.mktemp("three"), 3, properties=EARLY) as started:
        yield started


@pytest.fixture(scope="module")
def tools(three: Cluster) -> Tools:
    return Tools(three.bootstrap)


@pytest.fixture
def topic3(three: Cluster, topic: str) -> str:
    """A topic of three partitions with three replicas each, all in sync."""
    three.new_topic(topic, 3, 3)
    three.wait_until_whole()
    return topic


def fill(tools: Tools, topic: str, records: int = 2_000) -> None:
    shape = ("--num-records", str(records), "--record-size", "1000", "--throughput", "-1")
    tools.run("kafka-producer-perf-test", "--topic", topic, *shape, "--command-property", "acks=all")


def placed(three: Cluster, topic: str) -> dict[int, Partition]:
    return {each.index: each for each in three.partitions(topic)}


def plan(path: Path, topic: str, replicas: dict[int, list[int]]) -> Path:
    """A file as kafka-reassign-partitions reads it."""
    moves = [{"topic": topic, "partition": index, "replicas": nodes} for index, nodes in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": moves}))
    return path


# -- topics


def test_a_topic_is_spread_over_three_brokers(three: Cluster, tools: Tools, topic: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic, "--partitions", "6", "--replication-factor", "3")
    three.wait_until_whole()
    heading, *rows = tools.run("kafka-topics", "--describe", "--topic", topic).lines()
    assert "PartitionCount: 6\tReplicationFactor: 3" in heading
    fields = [dict(part.split(": ", 1) for part in row.strip().split("\t") if ": " in part) for row in rows]
    for row in fields:
        assert set(row["Replicas"].split(",")) == set(row["Isr"].split(",")) == {"1", "2", "3"}
        assert row["Leader"] == row["Replicas"].split(",")[0], "the first replica is the preferred leader"
    assert [sum(row["Leader"] == node for row in fields) for node in "123"] == [2, 2, 2], "leaders are even"


def test_more_replicas_than_brokers_are_refused(tools: Tools, topic: str) -> None:
    refused = tools.fail("kafka-topics", "--create", "--topic", topic, "--replication-factor", "4")
    assert "org.apache.kafka.common.errors.InvalidReplicationFactorException" in refused.stderr


def test_every_broker_says_which_apis_it_serves(three: Cluster, tools: Tools) -> None:
    headings = [line for line in tools.run("kafka-broker-api-versions").lines() if line.endswith("-> (")]
    expected = {f"{node.address} (id: {node.node_id} rack: null isFenced: false) -> (" for node in three.brokers}
    assert set(headings) == expected


def test_what_a_stopped_broker_leaves_behind_shows_in_the_filters(three: Cluster, tools: Tools, topic3: str) -> None:
    gone = three.nodes[3]
    assert gone.stop() is not None
    try:
        describe = ("kafka-topics", "--describe", "--topic", topic3)
        wait_for(
            "the in-sync sets to be smaller",
            lambda: all(len(each.isr) == 2 for each in three.partitions(topic3)),
            timeout_s=30,
        )
        assert len(tools.run(*describe, "--under-replicated-partitions").lines()) == 3
        assert len(tools.run(*describe, "--at-min-isr-partitions").lines()) == 3
        assert tools.run(*describe, "--unavailable-partitions").lines() == []
        assert tools.run(*describe, "--under-min-isr-partitions").lines() == []
    finally:
        three.start(3)
        three.wait_until_whole()


# -- moves


def test_partitions_are_moved_by_a_plan_under_a_throttle(
    three: Cluster, tools: Tools, topic3: str, tmp_path: Path
) -> None:
    fill(tools, topic3)
    wanted = {0: [2, 3], 1: [3, 1], 2: [1, 2]}
    file = plan(tmp_path / "plan.json", topic3, wanted)
    said = tools.run(
        "kafka-reassign-partitions", "--execute", "--reassignment-json-file", file, "--throttle", "50000000"
    ).stdout
    assert "The inter-broker throttle limit was set to 50000000 B/s" in said
    assert "Successfully started partition reassignments for " in said
    described = tools.run("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1").stdout
    assert "leader.replication.throttled.rate=50000000" in described

    def verified() -> bool:
        said = tools.run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", file).stdout
        return all(f"Reassignment of partition {topic3}-{index} is completed." in said for index in wanted)

    wait_for("the moves", verified, timeout_s=60, pause_s=0.5)
    assert {index: list(each.replicas) for index, each in placed(three, topic3).items()} == wanted
    # Verifying takes the throttles away again.
    described = tools.run("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1").stdout
    assert "replication.throttled.rate" not in described
    assert "throttled.replicas" not in tools.run("kafka-topics", "--describe", "--topic", topic3).stdout
    assert records_of(tools, topic3) == 2_000


def records_of(tools: Tools, topic: str) -> int:
    ends = [line.rsplit(":", 1)[1] for line in tools.run("kafka-get-offsets", "--topic", topic).lines()]
    return sum(map(int, ends))


def test_a_plan_is_generated(tools: Tools, topic3: str, tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic3}]}))
    generate = ("kafka-reassign-partitions", "--generate", "--topics-to-move-json-file", topics, "--broker-list")
    refused = tools.fail(*generate, "1,2")
    assert "The target replication factor of 3 cannot be reached" in refused.stdout
    lines = tools.run(*generate, "1,2,3").lines()
    current, proposed = (json.loads(line) for line in lines if line.startswith("{"))
    assert [sorted(each["replicas"]) for each in current["partitions"]] == [[1, 2, 3]] * 3
    assert [sorted(each["replicas"]) for each in proposed["partitions"]] == [[1, 2, 3]] * 3


def test_a_move_under_way_is_listed_and_cancelled(three: Cluster, tools: Tools, topic: str, tmp_path: Path) -> None:
    """At a kilobyte a second it would take an hour, so it is under way when it is cancelled."""
    tools.run("kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1:2")
    fill(tools, topic, 5_000)
    before = [1, 2]
    file = plan(tmp_path / "plan.json", topic, {0: [1, 3]})
    tools.run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", file, "--throttle", "1000")
    listed = tools.run("kafka-reassign-partitions", "--list").stdout
    assert re.search(rf"{topic}-0: replicas: [\d,]+\. adding: 3\. removing: 2\.", listed), listed
    verified = tools.run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", file).stdout
    assert f"Reassignment of partition {topic}-0 is still in progress." in verified
    said = tools.run("kafka-reassign-partitions", "--cancel", "--reassignment-json-file", file).stdout
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in said
    assert list(placed(three, topic)[0].replicas) == before
    assert "No partition reassignments found." in tools.run("kafka-reassign-partitions", "--list").stdout
    described = tools.run("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1").stdout
    assert "replication.throttled.rate" not in described
    three.wait_until_whole()


# -- elections


def test_preferred_leaders_are_elected(three: Cluster, tools: Tools, topic3: str, tmp_path: Path) -> None:
    before = placed(three, topic3)[0]
    turned = [*before.replicas[1:], before.replicas[0]]
    tools.run(
        "kafka-reassign-partitions", "--execute",
        "--reassignment-json-file", plan(tmp_path / "plan.json", topic3, {0: turned}),
    )  # fmt: skip
    wait_for("the new order", lambda: list(placed(three, topic3)[0].replicas) == turned, timeout_s=30)
    election = ("kafka-leader-election", "--election-type", "preferred", "--topic", topic3, "--partition", "0")
    said = tools.run(*election).stdout
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic3}-0" in said
    wait_for("the preferred leader", lambda: placed(three, topic3)[0].leader == turned[0], timeout_s=30)
    said = tools.run(*election).stdout
    assert f"Valid replica already elected for partitions {topic3}-0" in said


def test_a_partition_without_leader_gets_one_uncleanly_when_told(three: Cluster, tools: Tools, topic: str) -> None:
    """Of two replicas one is behind and alive, the other has everything and is gone."""
    create = ("kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1:2")
    tools.run(*create, "--config", "min.insync.replicas=1")
    three.wait_until_whole()
    three.nodes[2].stop()
    wait_for("broker 2 to leave the in-sync set", lambda: placed(three, topic)[0].isr == (1,), timeout_s=30)
    fill(tools, topic, 50)
    three.nodes[1].stop()
    three.start(2)
    rest = Tools(",".join(three.nodes[node].address for node in (2, 3)))
    try:
        wait_for("the leader to be missed", lambda: placed(three, topic)[0].leader == -1, timeout_s=30)
        election = ("kafka-leader-election", "--election-type", "unclean", "--topic", topic, "--partition", "0")
        said = rest.run(*election).stdout
        assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in said
        wait_for("a leader", lambda: placed(three, topic)[0].leader == 2, timeout_s=30)
    finally:
        three.start(1)
        three.wait_until_whole()
    assert records_of(tools, topic) == 0, "what only the other had is gone, as unclean elections do"


# -- the quorum


def status(tools: Tools) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in tools.run("kafka-metadata-quorum", "describe", "--status").lines())
    return {name: value.strip() for name, value in pairs}


def replication(tools: Tools) -> dict[int, dict[str, str]]:
    heading, *rows = (line.split() for line in tools.run("kafka-metadata-quorum", "describe", "--replication").lines())
    found = (dict(zip(heading, row, strict=True)) for row in rows)
    return {int(each["NodeId"]): each for each in found}


def test_the_quorum_has_one_leader_and_two_followers(three: Cluster, tools: Tools) -> None:
    said = status(tools)
    assert int(said["LeaderId"]) == three.controller()
    voters = {voter["id"]: voter for voter in json.loads(said["CurrentVoters"])}
    for node in three.nodes.values():
        assert voters[node.node_id]["endpoints"] == [f"CONTROLLER://{node.controller_address}"]
        assert voters[node.node_id]["directoryId"] == directory_id(node.data_dir)
    assert said["CurrentObservers"] == "[]"
    rows = replication(tools)
    assert sorted(each["Status"] for each in rows.values()) == ["Follower", "Follower", "Leader"]
    assert all(int(each["Lag"]) <= 5 for each in rows.values()), "a record now and then is always under way"


def directory_id(data_dir: Path) -> str:
    found = re.search(r"^directory\.id=(\S+)$", (data_dir / "meta.properties").read_text(), re.M)
    assert found
    return found[1]


def test_a_controller_is_removed_and_added_again(three: Cluster, tools: Tools) -> None:
    leader = three.controller()
    node = next(each for each in three.nodes.values() if each.node_id != leader)
    named = ("--controller-id", str(node.node_id), "--controller-directory-id", directory_id(node.data_dir))
    said = tools.run("kafka-metadata-quorum", "remove-controller", *named).stdout
    assert re.search(
        rf"Removed\s+KRaft controller {node.node_id} with directory id {directory_id(node.data_dir)}", said
    )

    def role(name: str) -> bool:
        return replication(tools).get(node.node_id, {}).get("Status") == name

    wait_for("it to observe", lambda: role("Observer"), timeout_s=30)
    again = tools.fail("kafka-metadata-quorum", "remove-controller", *named)
    assert "VoterNotFoundException" in again.stdout + again.stderr
    said = tools.run("kafka-metadata-quorum", "--command-config", node.config, "add-controller").stdout
    assert f"Added controller {node.node_id}" in said
    wait_for("it to follow as a voter", lambda: role("Follower"), timeout_s=30)
    assert len(json.loads(status(tools)["CurrentVoters"])) == 3


# -- brokers


def test_the_cluster_has_one_id_and_three_endpoints(three: Cluster, tools: Tools) -> None:
    (line,) = tools.run("kafka-cluster", "cluster-id").lines()
    assert line == f"Cluster ID: {three.cluster_id}"
    _heading, *rows = tools.run("kafka-cluster", "list-endpoints").lines()
    expected = [
        [str(node.node_id), node.host.address, str(node.host.port), "null", "unfenced", "broker"]
        for node in three.brokers
    ]
    assert sorted(row.split() for row in rows) == expected


def test_a_broker_that_is_gone_for_good_is_unregistered(three: Cluster, tools: Tools) -> None:
    three.add(4)
    endpoints = ("kafka-cluster", "list-endpoints", "--include-fenced-brokers")
    assert len(tools.run(*endpoints).lines()) == 1 + 4
    three.nodes.pop(4).stop()
    wait_for("broker 4 to be missed", lambda: 4 not in three.views()[0].brokers, timeout_s=30)
    rows = [line.split() for line in tools.run(*endpoints).lines()]
    assert [row[4] for row in rows if row[0] == "4"] == ["fenced"]
    assert "Broker 4 is no longer registered." in tools.run("kafka-cluster", "unregister", "--id", "4").stdout
    assert len(tools.run(*endpoints).lines()) == 1 + 3


# -- records


def test_a_console_producer_and_consumer_go_on_through_a_kill(three: Cluster, tools: Tools, topic3: str) -> None:
    first, rest = [f"line {number}" for number in range(100)], [f"line {number}" for number in range(100, 200)]
    produce = ("kafka-console-producer", "--topic", topic3, "--command-property", "acks=all")
    tools.run(*produce, stdin="\n".join(first) + "\n")
    leader = three.leader_of(topic3)
    three.nodes[leader].kill()
    try:
        tools.run(*produce, stdin="\n".join(rest) + "\n")
        read = tools.run(
            "kafka-console-consumer", "--topic", topic3, "--from-beginning", "--max-messages", "200",
            "--timeout-ms", "30000",
        )  # fmt: skip
        assert sorted(read.lines()) == sorted([*first, *rest])
    finally:
        three.start(leader)
        three.wait_until_whole()


def test_replicas_are_verified_by_kafkas_own_tool(three: Cluster, tools: Tools, topic3: str, tmp_path: Path) -> None:
    fill(tools, topic3, 500)
    command = java_command(
        "kafka-replica-verification", "--broker-list", three.bootstrap, "--topics-include", topic3,
        "--time", "-2", "--report-interval-ms", "500",
    )  # fmt: skip
    verifying = Child(command, tmp_path / "verification.log")
    try:
        report = r"max lag is 0 for partition \S+ at offset \d+ among 3 partitions"
        wait_for(
            "a report without lag",
            lambda: len(re.findall(report, verifying.log.read_text(errors="replace"))) > 1,
            timeout_s=60,
            pause_s=0.2,
        )
    finally:
        verifying.kill()
    assert "differ" not in verifying.log.read_text(errors="replace")


# -- files; these stop the cluster, so they come last


def decoded(path: Path) -> list[Any]:
    """The payloads of a metadata log or snapshot, in order, as kafka-dump-log tells them."""
    said = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", path)
    assert "isvalid: false" not in said.stdout
    assert "Error" not in said.stdout
    assert "Could not" not in said.stdout
    return [
        (re.search(r"offset: (\d+)", line)[1], json.loads(line.partition("payload: ")[2]))  # type: ignore[index]
        for line in said.lines()
        if "payload: {" in line
    ]


def test_the_metadata_logs_of_all_nodes_say_the_same_to_dump_log(three: Cluster, tools: Tools, topic3: str) -> None:
    fill(tools, topic3, 5_000)
    node_dirs = {node.node_id: node.data_dir for node in three.nodes.values()}
    directories = {node_id: data_dir / "__cluster_metadata-0" for node_id, data_dir in node_dirs.items()}
    three.wait_until_whole()
    three.stop()
    try:
        logs = {}
        for node_id, directory in directories.items():
            found = [each for segment in sorted(directory.glob("*.log")) for each in decoded(segment)]
            assert found, f"node {node_id} has a metadata log"
            logs[node_id] = dict(found)
            snapshots = metadata_snapshots(node_dirs[node_id])
            assert snapshots, f"node {node_id} has made a snapshot"
            for snapshot in snapshots:
                assert decoded(snapshot), snapshot
        one, *others = logs.values()
        for other in others:
            common = one.keys() & other.keys()
            assert common, "logs that share nothing prove nothing"
            assert {offset: one[offset] for offset in common} == {offset: other[offset] for offset in common}
        for index in range(3):
            files = [
                {
                    segment.name: segment.read_bytes()
                    for segment in sorted((node.data_dir / f"{topic3}-{index}").glob("*.log"))
                }
                for node in three.nodes.values()
            ]
            assert len(files[0]) > 1, "several segments"
            assert files[0] == files[1] == files[2]
    finally:
        three.launch()
        three.wait_until_serving()
