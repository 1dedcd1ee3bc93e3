"""From every release to the code of today under traffic, one node at a time, and back: nothing is lost or doubled."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.blocking import Admin
from penstock.metadata.features import ELR_VERSION, SUPPORTED, TRANSACTION_VERSION
from tests.cli.command import penstock
from tests.compat.cluster import wait_for
from tests.faults.cluster import readers, writers
from tests.faults.cluster.replicas import assert_identical, assert_metadata_identical
from tests.faults.counts import SOAKING, rounds
from tests.releases.code import CODE, unpack
from tests.upgrades.mixed import TODAY, MixedCluster
from tests.upgrades.resent import ResentLoad
from tests.upgrades.transactions import Transactions, transactions

# kafka-python leaves sockets behind whose connection failed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

log = logging.getLogger(__name__)

TOPIC, BOOKS, PARTITIONS = "ledger", "books", 3
SEGMENTS = {"log.segment.bytes": "1048576", "log.flush.offset.checkpoint.interval.ms": "2000"}
WRITING = (writers.Confluent, writers.Own)
READING = (readers.OwnAssigned, readers.ConfluentMember, readers.OwnMember)
"""Both group protocols are among them."""

releases = pytest.mark.parametrize("archive", CODE, ids=lambda path: path.name.removesuffix(".tar.xz"))


@contextmanager
def staged(home: Path, archive: Path, *, full: bool) -> Iterator[tuple[MixedCluster, ResentLoad]]:
    """Three nodes of a release under load, one of whose features is not at its highest level."""
    with MixedCluster(home / "cluster", unpack(archive, home / "release"), SEGMENTS) as cluster:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.update_features({ELR_VERSION: 0}, downgrade="safe")
        cluster.new_topic(TOPIC, PARTITIONS)
        writing, reading = (writers.IDEMPOTENT, readers.EVERY) if full else (WRITING, READING)
        with ResentLoad(cluster, TOPIC, PARTITIONS, writing=writing, reading=reading, rate_per_s=20) as load:
            load.wait_for_progress()
            yield cluster, load


@contextmanager
def in_transactions(cluster: MixedCluster) -> Iterator[Transactions]:
    for name in (BOOKS, f"{BOOKS}-source"):
        cluster.new_topic(name, PARTITIONS)
    with transactions(cluster.bootstrap, BOOKS, PARTITIONS) as everybody:
        yield everybody


def roll(cluster: MixedCluster, load: ResentLoad, to: Path | None, chance: random.Random, kills: int) -> None:
    """All nodes get other code, one after the other, the active controller last; some of them by kill -9.

    A node that was changed by a kill is killed once more with its new code before it is whole.
    """
    leader = cluster.controller()
    order = [*chance.sample([node for node in cluster.nodes if node != leader], len(cluster.nodes) - 1), leader]
    killed = set(chance.sample(order, kills))
    for node_id in order:
        log.info("node %d becomes %s%s", node_id, to or "today's", ", killed" if node_id in killed else "")
        cluster.change(node_id, to, by_kill=node_id in killed)
        if node_id in killed:
            cluster.change(node_id, to, by_kill=True)
        cluster.wait_until_whole()
        cluster.assert_runs(node_id)
        load.wait_for_progress()


def raise_features(cluster: MixedCluster) -> None:
    """As the guide says: with the command, when every node runs the new release."""
    said = penstock("cluster", "features", "upgrade", "--yes", "-b", cluster.bootstrap)
    assert (said.code, said.err) == (0, f"raised {TRANSACTION_VERSION} from 0 to 2\n")
    highest = {name: supported.max for name, supported in SUPPORTED.items()}
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:

        def raised() -> bool:
            return {each.name: each.finalized for each in admin.features()} == highest

        wait_for("every feature at its highest level", raised, timeout_s=20)


def judge(cluster: MixedCluster, load: ResentLoad) -> None:
    load.finish()
    cluster.wait_until_whole()
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        decided = admin.describe_quorum().high_watermark
    placed = {each.index: each.replicas for each in cluster.partitions(TOPIC)}
    exits = cluster.stop()
    assert set(exits.values()) == {0}, f"nodes ended with {exits}\n{cluster.last_words()}"
    for partition in range(PARTITIONS):
        replicas = {node_id: cluster.nodes[node_id].data_dir for node_id in placed[partition]}
        assert assert_identical(replicas, TOPIC, partition) > 0
    assert_metadata_identical({node.node_id: node.data_dir for node in cluster.nodes.values()}, decided)


@releases
@pytest.mark.timeout(240)
def test_a_release_becomes_todays_code_and_comes_back(archive: Path, tmp_path: Path) -> None:
    """One node there and back again while the others stay: the mixture has to work either way; one kill in between."""
    chance = random.Random(20_261_117)
    with staged(tmp_path, archive, full=False) as (cluster, load):
        node_id = chance.choice([each for each in cluster.nodes if each != cluster.controller()])
        cluster.change(node_id, TODAY)
        cluster.wait_until_whole()
        cluster.assert_runs(node_id)
        load.wait_for_progress()
        cluster.change(node_id, TODAY, by_kill=True)
        load.wait_for_progress()
        cluster.change(node_id, cluster.release)
        cluster.wait_until_whole()
        load.wait_for_progress()
        judge(cluster, load)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@releases
def test_ten_rolling_upgrades_and_back_lose_nothing(archive: Path, tmp_path: Path) -> None:
    """Ten times there and back with kills, then there for good, and the features raised. PENSTOCK_SEED draws others.

    Whenever the last node runs today's code transactions go on, with those in the middle that were left open before.
    """
    assert SOAKING
    chance = random.Random(os.environ.get("PENSTOCK_SEED", "1"))
    with staged(tmp_path, archive, full=True) as (cluster, load), in_transactions(cluster) as everybody:
        for number in rounds(fast=0, full=10):
            began = time.monotonic()
            roll(cluster, load, TODAY, chance, kills=chance.randint(0, 2))
            everybody.wait_for_commits()
            roll(cluster, load, cluster.release, chance, kills=chance.randint(0, 2))
            print(f"\nround {number + 1}: {time.monotonic() - began:.0f} s", end="", flush=True)
        roll(cluster, load, TODAY, chance, kills=1)
        # Levels that the release knows keep nobody from going back to it.
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.update_features({ELR_VERSION: 1})
        for to in (cluster.release, TODAY):
            cluster.change(1, to)
            cluster.wait_until_whole()
            load.wait_for_progress()
        raise_features(cluster)
        load.wait_for_progress()
        everybody.wait_for_commits()
        everybody.finish()
        everybody.judge()
        judge(cluster, load)
        print(f"\n{cluster.changes} changes of code, {cluster.kills} of them by kill -9; {load.history.summary()}")
        print(f"in transactions: {everybody.summary()}")
        print(f"sent twice by librdkafka's own choice: {[str(each) for each in load.resent]}")


def test_there_is_code_of_every_release() -> None:
    assert [path.name for path in CODE] == ["penstock-0.1.0.tar.xz"]


@pytest.mark.timeout(240)
def test_a_release_that_does_not_know_a_level_is_kept_out_and_says_why(tmp_path: Path) -> None:
    """What happens to a node that goes back too late: the others go on, and with the newer release it is among them."""
    older = unpack(CODE[-1], tmp_path / "older")
    levels = older / "penstock" / "metadata" / "features.py"
    known = levels.read_text()
    levels.write_text(known.replace("VersionRange(METADATA_3_3, METADATA_4_3)", "VersionRange(METADATA_3_3, 29)"))
    assert levels.read_text() != known
    cluster = MixedCluster(tmp_path / "cluster", older)
    cluster.code = dict.fromkeys(cluster.nodes, TODAY)
    with cluster:
        leader = cluster.nodes[cluster.controller()]
        node = next(each for each in cluster.nodes.values() if each is not leader)
        assert node.stop() == 0
        cluster.code[node.node_id] = older
        cluster.launch(node.node_id)
        assert node.child is not None
        assert node.child.wait(60) == 1
        assert node.says(f"broker {node.node_id} is not registered: UNSUPPORTED_VERSION")
        assert leader.says(f"the cluster runs metadata.version 30, broker {node.node_id} supports 7 to 29")
        cluster.code[node.node_id] = TODAY
        cluster.start(node.node_id)
        cluster.wait_until_whole()
        assert set(cluster.stop().values()) == {0}
