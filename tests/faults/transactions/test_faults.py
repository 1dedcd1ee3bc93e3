"""Consume, transform, produce through overlapping faults: every input once in every output, and nothing left open.

`make test` has five faults on three nodes, `make soak PART=txn` a hundred. PENSTOCK_SEED draws other ones.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.command import penstock
from tests.faults.cluster.faults import Fault
from tests.faults.cluster.hosts import new_network
from tests.faults.cluster.replicas import assert_identical, high_watermark, stored
from tests.faults.cluster.schedule import Planner
from tests.faults.cluster.siege import Siege
from tests.faults.cluster.watched import WatchedCluster
from tests.faults.counts import MINUTES, SOAKING, rounds
from tests.faults.transactions import watchers
from tests.faults.transactions.faults import LINKS, TXN_MENU, TransactionScene, menu
from tests.faults.transactions.history import Log, few_of_each
from tests.faults.transactions.load import TransactionLoad
from tests.faults.transactions.workshop import Team, Timing, Workshop
from tests.patience import within

# kafka-python leaves sockets behind whose connection failed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

SOURCE, PARTITIONS = "orders", 3
NODES = 3
WORKERS_AT = (4, 5)
"""Places on the network where workers sit."""
PROPERTIES = {
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "metadata.log.max.record.bytes.between.snapshots": "200000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}
FEW = [
    Team("confluent", feeds=True),
    Team("confluent", "consumer"),
    Team("kafka-python", static=True),
    Team("aiokafka"),
    Team("penstock", "consumer", workers=2),
]
"""Each library once."""
ALL = [
    Team("confluent", feeds=True),
    Team("penstock", feeds=True),
    Team("confluent", workers=2),
    Team("confluent", "consumer", workers=2),
    Team("kafka-python", workers=2, static=True),
    Team("aiokafka"),
    Team("penstock", workers=2, static=True),
    Team("penstock", "consumer", workers=2),
]
"""Each library in each protocol that it knows."""
SEED = os.environ.get("PENSTOCK_SEED", "1")
EVERY_DAY = (
    "kill_transaction_coordinator",
    "isolate_group_coordinator",
    "kill_worker",
    "pause_leader",
    "kill_controller",
)
INSTEAD = ("kill_transaction_coordinator", "pause_group_coordinator", "kill_worker", "pause_leader", "kill_controller")
"""Where this machine lets us make no networks."""


@contextmanager
def staged(home: Path, teams: list[Team], timing: Timing) -> Iterator[Siege]:
    """A cluster with workers at work; whatever was made for it goes away."""
    with ExitStack() as stack:
        network = new_network(SEED)
        stack.callback(network.close)
        cluster = stack.enter_context(WatchedCluster(home, NODES, properties=PROPERTIES, host=network.host))
        workers_at = {at: network.host(at) for at in WORKERS_AT} if network.can_cut else {}
        workshop = Workshop(home, cluster.bootstrap, SOURCE, PARTITIONS, teams, [*workers_at.values()], timing)
        for topic in workshop.topics:
            cluster.new_topic(topic, PARTITIONS, retention_ms="-1")
        load = stack.enter_context(TransactionLoad(cluster, workshop, PARTITIONS, watchers.EVERY))
        load.wait_for_progress()
        scene = TransactionScene(cluster, network, shims={}, disks={}, load=load, workers_at=workers_at)
        siege = Siege(scene, menu=TXN_MENU)
        stack.callback(siege.abandon)
        yield siege


def besiege(siege: Siege, faults: Sequence[Fault], count: int, *, name: str, timing: Timing) -> None:
    """So many faults of this menu in overlapping waves, and then the judgement."""
    scene = siege.scene
    assert isinstance(scene, TransactionScene), "it was staged"
    waves = Planner(f"{SEED}-{name}", [each.kind for each in faults], nodes=NODES).waves(count)
    for _ in rounds(fast=count, full=count):
        wave = next(waves, None)
        if wave is None:
            break
        siege.endure(wave)
    scene.load.finish()
    assert "no transaction hangs" in penstock("txn", "find-hanging", "-b", scene.cluster.bootstrap).err
    judge(scene, within(timing.classic_notice_ms) / 1000)
    print(f"\n{name}, seed {SEED}: {siege.summary()}\n{scene.workshop.summary()}")


def judge(scene: TransactionScene, notice_s: float) -> None:
    """The files of the stopped nodes, which all have the same, and then what everybody said and saw."""
    cluster, history = scene.cluster, scene.load.history
    cluster.wait_until_whole()
    placed = {topic: {at.index: at.replicas for at in cluster.partitions(topic)} for topic in scene.workshop.topics}
    exits = cluster.stop()
    assert set(exits.values()) == {0}, f"nodes ended with {exits}\n{cluster.last_words()}"
    for topic, partitions in placed.items():
        for partition, node_ids in partitions.items():
            replicas = {node_id: cluster.nodes[node_id].data_dir for node_id in node_ids}
            end = assert_identical(replicas, topic, partition)
            history.logs[topic, partition] = read = Log()
            for base, _, batch in stored(replicas[node_ids[0]] / f"{topic}-{partition}"):
                if base < end:
                    read.add(batch)
    anomalies = history.check(notice_s=notice_s)
    assert not anomalies, few_of_each(anomalies)
    assert all(high_watermark(node.data_dir, SOURCE, 0) > 0 for node in cluster.brokers)


@pytest.mark.timeout(240)
def test_five_overlapping_faults_tear_nothing(tmp_path: Path) -> None:
    timing = Timing()
    with staged(tmp_path, FEW, timing) as siege:
        names = EVERY_DAY if siege.scene.network.can_cut else INSTEAD
        besiege(siege, [TXN_MENU[name] for name in names], 5, name="every-day", timing=timing)


def test_the_every_day_faults_are_on_the_menu() -> None:
    assert set(EVERY_DAY) | set(INSTEAD) <= set(TXN_MENU)
    assert not set(INSTEAD) & LINKS


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 600)
def test_a_hundred_overlapping_faults_tear_nothing(tmp_path: Path) -> None:
    """Every fault of the menu in a random order, then again, until the count is full."""
    assert SOAKING
    timing = Timing()
    with staged(tmp_path, ALL, timing) as siege:
        scene = siege.scene
        assert isinstance(scene, TransactionScene), "it was staged"
        besiege(siege, menu(scene), int(os.environ.get("PENSTOCK_FAULTS", "100")), name="hundred", timing=timing)
