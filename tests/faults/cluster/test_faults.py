"""Faults that overlap, under load: nothing acknowledged is lost, written twice or out of order, and everyone goes on.

`make test` has five faults on three nodes; the soak has five hundred on three and five nodes and with controllers
apart. PENSTOCK_SEED draws other ones.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.blocking import Admin
from tests.compat.cluster import BROKER, CONTROLLER, Host
from tests.faults.cluster import writers
from tests.faults.cluster.churn import Churn
from tests.faults.cluster.disks import Disk, disks_allowed
from tests.faults.cluster.faults import DISKS, LINKS, MENU, Fault, Scene, menu
from tests.faults.cluster.hosts import new_network
from tests.faults.cluster.load import Load
from tests.faults.cluster.replicas import assert_identical, assert_metadata_identical
from tests.faults.cluster.schedule import Planner
from tests.faults.cluster.shim import Shim
from tests.faults.cluster.siege import Siege
from tests.faults.cluster.watched import WatchedCluster
from tests.faults.counts import MINUTES, SOAKING, rounds

# kafka-python leaves sockets behind whose connection failed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

TOPIC, PARTITIONS = "ledger", 3
SHORT_LIVED = "short-lived"
SHORT = {"retention_ms": "4000", "segment_ms": "1000", "retention_bytes": "2000000"}
APART = {1: CONTROLLER, 2: CONTROLLER, 3: CONTROLLER, 4: BROKER, 5: BROKER, 6: BROKER}
PROPERTIES = {
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "200000",
    # A node whose clock was set back would rightly refuse what clients send as of today.
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
}
SEED = os.environ.get("PENSTOCK_SEED", "1")
EVERY_DAY = ("kill_leader", "isolate_controller", "cut_power_leader", "pause_controller", "lose_packets")
INSTEAD = ("kill_leader", "kill_controller", "corrupt_tail", "pause_leader", "stop_any")
"""Where this machine lets us make no networks and disks."""


@contextmanager
def staged(home: Path, nodes: int, roles: dict[int, str] | None = None, *, rate_per_s: float = 15.0) -> Iterator[Siege]:
    """A cluster under load, on links and disks of its own; whatever was made for it goes away."""
    with ExitStack() as stack:
        network = new_network(SEED)
        stack.callback(network.close)
        ids = [*(roles or range(1, nodes + 1))]
        shims = {node_id: Shim(home / f"shim-{node_id}") for node_id in ids}
        for shim in shims.values():
            stack.callback(shim.close)

        def host(node_id: int) -> Host:
            found = network.host(node_id)
            return found._replace(prefix=(*found.prefix, *shims[node_id].words))

        cluster = WatchedCluster(home, nodes, roles=roles, properties=PROPERTIES, host=host)
        disks = {}
        if disks_allowed():
            for node in cluster.nodes.values():
                disks[node.node_id] = disk = Disk(home / f"disk-{node.node_id}", node.data_dir)
                stack.callback(disk.close)
                disk.make()
        stack.enter_context(cluster)
        cluster.new_topic(TOPIC, PARTITIONS, retention_ms="-1")
        cluster.new_topic(SHORT_LIVED, 1, **SHORT)
        beside = stack.enter_context(
            Load(cluster, SHORT_LIVED, 1, writing=writers.IDEMPOTENT[:1], reading=[], rate_per_s=rate_per_s)
        )
        churn = stack.enter_context(Churn(cluster.bootstrap))
        load = stack.enter_context(Load(cluster, TOPIC, PARTITIONS, rate_per_s=rate_per_s))
        load.wait_for_progress()
        siege = Siege(Scene(cluster, network, load, shims, disks), churn, beside)
        stack.callback(siege.abandon)
        yield siege


def besiege(siege: Siege, faults: Sequence[Fault], count: int, *, name: str) -> None:
    """So many faults of this menu in overlapping waves, and then the judgement."""
    kinds = [each.kind for each in faults]
    planner = Planner(f"{SEED}-{name}", kinds, nodes=len(siege.scene.cluster.nodes))
    waves = planner.waves(count)
    for _ in rounds(fast=count, full=count):
        wave = next(waves, None)
        if wave is None:
            break
        siege.endure(wave)
    judge(siege)
    print(f"\n{name}, seed {SEED}: {siege.summary()}")


def judge(siege: Siege) -> None:
    """The history, and then, of the stopped nodes, the files."""
    scene = siege.scene
    scene.load.finish()
    scene.cluster.wait_until_whole()
    assert siege.churn is not None, "it was staged"
    assert siege.beside is not None, "it was staged"
    siege.churn.stop()
    # Records on their way to nodes that have stopped would be waited for as long as a producer tries.
    siege.beside.end_writing()
    siege.beside.assert_nothing_given_up()
    placed = {each: {at.index: at.replicas for at in scene.cluster.partitions(each)} for each in (TOPIC, SHORT_LIVED)}
    with Admin(bootstrap_servers=scene.cluster.bootstrap) as admin:
        decided = admin.describe_quorum().high_watermark
    exits = scene.cluster.stop()
    assert set(exits.values()) == {0}, f"nodes ended with {exits}\n{scene.cluster.last_words()}"
    for topic, partitions in placed.items():
        for partition, node_ids in partitions.items():
            replicas = {node_id: scene.cluster.nodes[node_id].data_dir for node_id in node_ids}
            assert assert_identical(replicas, topic, partition) > 0
    assert_metadata_identical({node.node_id: node.data_dir for node in scene.cluster.nodes.values()}, decided)


@pytest.mark.timeout(240)
def test_five_overlapping_faults_lose_nothing(tmp_path: Path) -> None:
    with staged(tmp_path, 3, rate_per_s=40) as siege:
        names = EVERY_DAY if siege.scene.network.can_cut and siege.scene.disks else INSTEAD
        besiege(siege, [MENU[name] for name in names], 5, name="every-day")


def test_the_every_day_faults_are_on_the_menu() -> None:
    assert set(EVERY_DAY) | set(INSTEAD) | LINKS | DISKS <= set(MENU)
    assert not set(INSTEAD) & (LINKS | DISKS)


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES * 3 + 600)
@pytest.mark.parametrize(
    ("nodes", "roles", "count"),
    [(3, None, 250), (5, None, 170), (6, APART, 80)],
    ids=["three-nodes", "five-nodes", "controllers-apart"],
)
def test_many_overlapping_faults_lose_nothing(
    tmp_path: Path, nodes: int, roles: dict[int, str] | None, count: int, request: pytest.FixtureRequest
) -> None:
    """Every fault of the menu in a random order, then again, until the count is full."""
    assert SOAKING
    count = int(os.environ.get("PENSTOCK_FAULTS", count))
    with staged(tmp_path, nodes, roles) as siege:
        besiege(siege, menu(siege.scene), count, name=request.node.callspec.id)
