"""What a cluster promises when it is cut in two, when a node leaves in order, and when one joins."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.blocking import Admin
from tests.compat.batches import Record, encode_batch
from tests.compat.cluster import ClusterNode, Partition, PenstockCluster, create_topic, view
from tests.compat.processes import wait_for
from tests.compat.wire import BrokerError, Connection, produce_reply, produce_request
from tests.faults.cluster import readers, writers
from tests.faults.cluster.hosts import CLIENTS, Network, namespaces_allowed, new_network, separate
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import assert_identical
from tests.faults.node import read_all
from tests.patience import within

# kafka-python leaves sockets behind whose connection failed.
pytestmark = [pytest.mark.timeout(180), pytest.mark.filterwarnings("ignore::ResourceWarning")]

TOPIC = "ledger"
OK, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND = 0, 6, 7, 19, 20
UNANSWERED = -1
LEADER, ALL = 1, -1


@pytest.fixture
def network() -> Iterator[Network]:
    """Hosts whose links can be cut."""
    if not namespaces_allowed():
        pytest.skip("cutting links takes network namespaces, which only root may make")
    made = new_network()
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path: Path, network: Network) -> Iterator[PenstockCluster]:
    # Brokers ask for the controller for so long before they tell a client that there is none.
    impatient = {"request.timeout.ms": "3000"}
    with PenstockCluster(tmp_path, 3, properties=impatient, host=network.host) as started:
        started.new_topic(TOPIC, 1)
        started.wait_until_whole()
        yield started


def send(node: ClusterNode, value: str, *, acks: int = ALL, timeout_ms: int = 1_000) -> int:
    """One value to one broker, whoever leads; the error code it answers, or UNANSWERED."""
    timeout_ms = within(timeout_ms)
    batch = encode_batch([Record(value.encode())], base_timestamp_ms=int(time.time() * 1000))
    try:
        with Connection(node.host.address, node.host.port, timeout_s=timeout_ms / 1000 + 5) as link:
            return produce_reply(link.call(produce_request(TOPIC, 0, batch, acks, timeout_ms))).error
    except OSError:
        return UNANSWERED


def wait_for_another_leader(cluster: PenstockCluster, deposed: ClusterNode) -> ClusterNode:
    def elected() -> ClusterNode | None:
        for node in cluster.brokers:
            if node is not deposed and node.running:
                for each in view(node.address, [TOPIC]).partitions:
                    if each.leader not in (-1, deposed.node_id):
                        return cluster.nodes[each.leader]
        return None

    return wait_for("another leader", elected, timeout_s=30)


def _unless_it_leads_not(code: int) -> list[int]:
    return [] if code == NOT_LEADER_OR_FOLLOWER else [code]


def values(cluster: PenstockCluster) -> list[str]:
    return [value.decode() for value in read_all(cluster.bootstrap, TOPIC, [0]).values()]


def test_a_minority_acknowledges_nothing_that_all_should_have(cluster: PenstockCluster, network: Network) -> None:
    """Its leader goes on for those who ask for less, and what it told them is gone after the healing."""
    old = cluster.nodes[cluster.leader_of(TOPIC)]
    others = [node_id for node_id in cluster.nodes if node_id != old.node_id]
    assert send(old, "before") == OK
    separate(network, [old.node_id], others)
    refused = {send(old, "minority, at once"), send(old, "minority, at once", acks=ALL)}
    assert send(old, "minority, leader alone", acks=LEADER) == OK
    new = wait_for_another_leader(cluster, old)
    # What another broker says of the new leader, it may hear a moment later itself.
    answer = wait_for("the new leader to lead", lambda: _unless_it_leads_not(send(new, "majority")), timeout_s=30)
    assert answer == [OK]
    # However long it lasts, and whatever it has learned of its followers by now.
    refused |= {send(old, f"minority, later {number}") for number in range(4)}
    assert OK not in refused
    assert refused <= {REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND}
    network.heal()
    wait_for("the deposed leader to refuse", lambda: send(old, "late") == NOT_LEADER_OR_FOLLOWER, timeout_s=30)
    cluster.wait_until_whole()
    assert values(cluster) == ["before", "majority"]
    cluster.stop()
    assert_identical({node.node_id: node.data_dir for node in cluster.brokers}, TOPIC, 0)


def test_a_node_that_is_left_alone_acknowledges_nothing_that_all_should_have(tmp_path: Path) -> None:
    """The others are dead, not cut off: there is no majority that could elect anybody."""
    with PenstockCluster(tmp_path, 3) as cluster:
        cluster.new_topic(TOPIC, 1)
        cluster.wait_until_whole()
        last = cluster.nodes[cluster.leader_of(TOPIC)]
        assert send(last, "before") == OK
        others = [node for node in cluster.brokers if node is not last]
        for node in others:
            node.kill()
        assert OK not in {send(last, f"alone {number}") for number in range(5)}
        cluster.launch(*(node.node_id for node in others))
        cluster.wait_until_whole()
        leader = cluster.nodes[cluster.leader_of(TOPIC)]
        wait_for("a write after the return", lambda: send(leader, "after") == OK, timeout_s=30)
        found = values(cluster)
        assert found[0] == "before"
        assert found[-1] == "after"


def test_a_deposed_controller_decides_nothing(cluster: PenstockCluster, network: Network) -> None:
    old = cluster.nodes[cluster.controller()]
    others = [node_id for node_id in cluster.nodes if node_id != old.node_id]
    rest = ",".join(cluster.nodes[node_id].address for node_id in others)
    separate(network, [old.node_id], others)
    with pytest.raises((BrokerError, OSError)), cluster.connection(old, timeout_s=30) as connection:
        create_topic(connection, "decided-by-the-minority", 1, 1, timeout_ms=within(3_000))
    with Admin(bootstrap_servers=rest) as admin:
        admin.create_topic("decided-by-the-majority", 1, 2)
        epoch = admin.describe_quorum().epoch
    network.heal()
    cluster.wait_until_whole()
    for node in cluster.brokers:

        def topics(node: ClusterNode = node) -> set[str]:
            return {each.topic for each in view(node.address).partitions}

        wait_for("the majority's word to arrive", lambda: "decided-by-the-majority" in topics(), timeout_s=30)
        assert "decided-by-the-minority" not in topics()
    with Admin(bootstrap_servers=old.address) as admin:
        quorum = admin.describe_quorum()
    assert quorum.epoch >= epoch
    assert quorum.leader != old.node_id or quorum.epoch > epoch


def test_a_leader_that_nobody_hears_is_replaced_though_it_hears_all(cluster: PenstockCluster, network: Network) -> None:
    old = cluster.nodes[cluster.leader_of(TOPIC)]
    network.cut(old.node_id, [CLIENTS, *(node_id for node_id in cluster.nodes if node_id != old.node_id)])
    new = wait_for_another_leader(cluster, old)
    wait_for("a write at the new leader", lambda: send(new, "heard") == OK, timeout_s=30)
    network.heal()
    cluster.wait_until_whole()
    assert values(cluster)[-1] == "heard"


def test_a_node_that_stops_in_order_hands_over_and_no_produce_fails(tmp_path: Path) -> None:
    """Sessions are long here: who moved on within seconds did so because leaders were handed over."""
    patient = {"broker.session.timeout.ms": "60000"}
    with PenstockCluster(tmp_path, 3, properties=patient) as cluster:
        cluster.new_topic(TOPIC, 3)
        with Load(cluster, TOPIC, 3, reading=readers.ASSIGNED[:1]) as load:
            load.wait_for_progress()
            for node in cluster.brokers:
                led = {each.index for each in cluster.partitions(TOPIC) if each.leader == node.node_id}
                assert node.stop() == 0
                assert all(each.leader not in (-1, node.node_id) for each in cluster.partitions(TOPIC)), led
                load.wait_for_progress()
                cluster.start(node.node_id)
                cluster.wait_until_whole()
            load.finish()


def test_a_fourth_node_joins_and_is_filled_under_load(tmp_path: Path) -> None:
    with PenstockCluster(tmp_path, 3) as cluster:
        cluster.new_topic(TOPIC, 8)
        with Load(cluster, TOPIC, 8, writing=writers.IDEMPOTENT, reading=readers.ASSIGNED[:2]) as load:
            load.wait_for_progress()
            cluster.add(4)
            cluster.wait_until_whole()  # so that whichever broker is asked knows of it
            balance = subprocess.run(
                [sys.executable, "-P", "-m", "penstock.cli.main", "cluster", "partitions", "balance",
                 "-b", cluster.bootstrap],
                capture_output=True, text=True, timeout=within(120), check=False,
            )  # fmt: skip
            assert balance.returncode == 0, balance.stderr
            cluster.wait_until_whole()

            def leading() -> list[Partition]:
                """What node 4 holds, if it leads some of it, in the eyes of one broker at one moment."""
                held = [each for each in cluster.partitions(TOPIC) if 4 in each.replicas]
                return held if any(each.leader == 4 for each in held) else []

            # The controller has decided; the broker that is asked may hear of it a moment later.
            held = wait_for("node 4 to lead its share too", leading, timeout_s=30)
            assert 5 <= len(held) <= 7, f"its share of 8 partitions with 3 replicas on 4 brokers is 6: {held}"
            load.wait_for_progress()
            load.finish()
        # Who has fallen behind on a busy machine is let catch up: a stop waits for nobody.
        cluster.wait_until_whole()
        placed = {each.index: each.replicas for each in cluster.partitions(TOPIC)}
        cluster.stop()
        for partition, replicas in placed.items():
            assert_identical({node: cluster.nodes[node].data_dir for node in replicas}, TOPIC, partition)
