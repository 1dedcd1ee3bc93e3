"""Faults one after the other under load: nothing acknowledged is lost, written twice or out of order, and everyone
goes on.

`make test` has a few faults on three nodes; the soak has two hundred on three and five nodes and with controllers
apart.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.blocking import Admin
from tests.compat.cluster import BROKER, CONTROLLER, PenstockCluster
from tests.faults.cluster.faults import (
    Fault,
    Scene,
    corrupt_tail,
    isolate,
    kill_controller,
    kill_leader,
    menu,
    mount_small_disk,
    pause_leader,
    restart,
    unmount,
)
from tests.faults.cluster.hosts import namespaces_allowed, new_network
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import assert_identical, assert_metadata_identical
from tests.faults.counts import SOAKING, rounds

# kafka-python leaves sockets behind whose connection failed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

TOPIC, PARTITIONS = "ledger", 3
APART = {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: BROKER, 5: BROKER, 6: BROKER}
SEGMENTS = {"log.segment.bytes": "1048576", "log.flush.offset.checkpoint.interval.ms": "2000"}


@contextmanager
def staged(home: Path, nodes: int, roles: dict[int, str] | None = None, *, rate_per_s: float = 40.0) -> Iterator[Scene]:
    """A cluster under load; whatever was made for it goes away."""
    with ExitStack() as stack:
        network = new_network()
        stack.callback(network.close)
        cluster = PenstockCluster(home, nodes, roles=roles, properties=SEGMENTS, host=network.host)
        small_disk = 0
        if namespaces_allowed():
            small_disk = max(cluster.nodes)
            mount_small_disk(cluster.nodes[small_disk].data_dir)
            stack.callback(unmount, cluster.nodes[small_disk].data_dir)
        stack.enter_context(cluster)
        cluster.new_topic(TOPIC, PARTITIONS)
        with Load(cluster, TOPIC, PARTITIONS, rate_per_s=rate_per_s) as load:
            load.wait_for_progress()
            yield Scene(cluster, network, load, small_disk)


def hurt(scene: Scene, fault: Fault, chance: random.Random) -> None:
    log.info("fault: %s", fault.__name__)
    fault(scene, chance)
    scene.cluster.wait_until_whole()
    scene.load.wait_for_progress()


def judge(scene: Scene) -> None:
    """The history, and then, of the stopped nodes, the files."""
    scene.load.finish()
    scene.cluster.wait_until_whole()
    placed = {each.index: each.replicas for each in scene.cluster.partitions(TOPIC)}
    with Admin(bootstrap_servers=scene.cluster.bootstrap) as admin:
        decided = admin.describe_quorum().high_watermark
    exits = scene.cluster.stop()
    assert set(exits.values()) == {0}, f"nodes ended with {exits}\n{scene.cluster.last_words()}"
    for partition in range(PARTITIONS):
        replicas = {node_id: scene.cluster.nodes[node_id].data_dir for node_id in placed[partition]}
        assert assert_identical(replicas, TOPIC, partition) > 0
    assert_metadata_identical({node.node_id: node.data_dir for node in scene.cluster.nodes.values()}, decided)


def some_faults() -> list[Fault]:
    """Five for every day: one of each kind that matters most."""
    links = [isolate] if namespaces_allowed() else [restart]
    return [kill_leader, *links, kill_controller, pause_leader, corrupt_tail]


@pytest.mark.timeout(180)
def test_five_faults_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(20_260_105)
    with staged(tmp_path, 3) as scene:
        for fault in some_faults():
            hurt(scene, fault, chance)
        judge(scene)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    ("nodes", "roles", "count"),
    [(3, None, 110), (5, None, 60), (6, APART, 40)],
    ids=["three-nodes", "five-nodes", "controllers-apart"],
)
def test_many_faults_lose_nothing(tmp_path: Path, nodes: int, roles: dict[int, str] | None, count: int) -> None:
    """Every fault of the menu in a random order, then again, until the count is full. PENSTOCK_SEED chooses another."""
    assert SOAKING
    chance = random.Random(f"{os.environ.get('PENSTOCK_SEED', '1')}-{nodes}")
    with staged(tmp_path, nodes, roles, rate_per_s=15) as scene:
        waiting: list[Fault] = []
        for number in rounds(fast=0, full=count):
            if not waiting:
                waiting = chance.sample(menu(scene), len(menu(scene)))
            fault = waiting.pop()
            log.info("fault %d of %d", number + 1, count)
            hurt(scene, fault, chance)
        judge(scene)
