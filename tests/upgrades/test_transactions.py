"""Transactions while nodes of a release without them are about: none begins, none is lost, each ends as was told."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.blocking import Admin, Producer
from penstock.client.errors import BrokerRefused, TimedOutWaiting
from penstock.model.errors import INVALID_TXN_STATE
from penstock.model.ids import TRANSACTIONS_TOPIC, TopicPartition
from tests.cli.command import penstock
from tests.compat.cluster import ClusterNode
from tests.compat.wire import INIT_PRODUCER_ID, request, text
from tests.patience import wait_for
from tests.releases.code import CODE, unpack
from tests.upgrades.mixed import TODAY, MixedCluster
from tests.upgrades.transactions import Transactions, end_for_sure, transactions

TOPIC, PARTITIONS = "ledger", 3
SETTINGS = {
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
FIND_COORDINATOR, TRANSACTIONAL = 10, 1
COORDINATOR_NOT_AVAILABLE = 15
AT_REST = ("Empty", "CompleteCommit", "CompleteAbort")
IDS = [f"id-{number}" for number in range(8)]
"""Of several partitions of the state topic."""

releases = pytest.mark.parametrize("archive", CODE, ids=lambda path: path.name.removesuffix(".tar.xz"))


@contextmanager
def staged(home: Path, archive: Path) -> Iterator[tuple[MixedCluster, Transactions]]:
    """Three nodes of a release, and clients that want transactions from the beginning."""
    with MixedCluster(home / "cluster", unpack(archive, home / "release"), SETTINGS) as cluster:
        for name in (TOPIC, f"{TOPIC}-source"):
            cluster.new_topic(name, PARTITIONS)
        with transactions(cluster.bootstrap, TOPIC, PARTITIONS) as everybody:
            yield cluster, everybody


def answers(cluster: MixedCluster) -> set[int]:
    """The errors that nodes answer when somebody looks for the coordinators of some ids, and wants to begin there."""
    return {_answer(cluster, node, name) for node in cluster.brokers for name in IDS}


def _answer(cluster: MixedCluster, node: ClusterNode, name: str) -> int:
    with cluster.connection(node) as connection:
        found = connection.call(request(FIND_COORDINATOR, 2, text(name) + struct.pack(">b", TRANSACTIONAL)))
    _throttle_ms, error = found.take("ih")
    found.text()
    if error:
        return error
    with cluster.connection(cluster.nodes[found.one("i")]) as connection:
        begun = connection.call(request(INIT_PRODUCER_ID, 1, text(name) + struct.pack(">i", 60_000)))
    _throttle_ms, error = begun.take("ih")
    return error


def assert_closed(cluster: MixedCluster) -> None:
    assert answers(cluster) == {COORDINATOR_NOT_AVAILABLE}


def become(cluster: MixedCluster, node_id: int, to: Path | None, *, by_kill: bool = False) -> None:
    cluster.change(node_id, to, by_kill=by_kill)
    cluster.wait_until_whole()
    cluster.assert_runs(node_id)


def let_lead(cluster: MixedCluster, node_id: int) -> TopicPartition:
    """A partition of the topic that the node leads from now on, as its preferred replica; it is the only one."""
    preferred = next(each for each in cluster.partitions(TOPIC) if each.replicas[0] == node_id)
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.elect_leaders([TopicPartition(TOPIC, preferred.index)]).checked()
    wait_for(
        f"node {node_id} to lead", lambda: cluster.leader_of(TOPIC, preferred.index) == node_id, timeout_s=30
    )  # fmt: skip
    return TopicPartition(TOPIC, preferred.index)


def ended(cluster: MixedCluster, name: str) -> None:
    """Returns when a transactional id has nothing open and nothing left to mark."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        wait_for(
            f"the end of {name}",
            lambda: admin.describe_transaction(name).state in AT_REST,
            timeout_s=60,
        )


def count(everybody: Transactions, value: str) -> list[int]:
    return [values.count(value) for values in everybody.reader.seen.values()]


@releases
@pytest.mark.timeout(240)
def test_transactions_begin_with_the_last_node_and_wait_for_one_that_goes_back(archive: Path, tmp_path: Path) -> None:
    """Then the level is raised, after which nobody goes back any more."""
    with staged(tmp_path, archive) as (cluster, everybody):
        for node_id in (1, 2):
            become(cluster, node_id, TODAY)
            assert_closed(cluster)
        assert TRANSACTIONS_TOPIC not in {each.topic for each in cluster.look(cluster.nodes[1]).partitions}
        become(cluster, 3, TODAY)
        everybody.wait_for_commits()
        one_goes_back_and_comes(cluster, everybody)
        raise_level(cluster)
        everybody.wait_for_commits()
        is_kept_out(cluster, 2)
        judge(cluster, everybody)
        print(f"\n{everybody.summary()}")


def one_goes_back_and_comes(cluster: MixedCluster, everybody: Transactions) -> None:
    """Transactions are open in a partition that the old node leads: one waits for its commit, one is out of time.

    The old node refuses what would go on with them: it is told at once, and nothing of it is kept.
    """
    settings = {"bootstrap_servers": cluster.bootstrap, "max_block_ms": 1_000}
    with (
        Producer(transactional_id="patient", transaction_timeout_ms=600_000, **settings) as patient,
        Producer(transactional_id="late", transaction_timeout_ms=6_000, **settings) as late,
    ):
        for name, producer in (("patient", patient), ("late", late)):
            producer.begin()
            for partition in range(PARTITIONS):
                producer.send(TOPIC, name, partition=partition).result()
        become(cluster, 2, cluster.release, by_kill=True)
        place = let_lead(cluster, 2)
        assert_closed(cluster)
        with pytest.raises(BrokerRefused) as refused:
            late.send(TOPIC, "refused", partition=place.partition).result()
        assert refused.value.error is INVALID_TXN_STATE
        with pytest.raises(TimedOutWaiting):
            patient.commit()
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:

            def waits_for_the_old_node() -> bool:
                found = admin.describe_transaction("late")
                return found.state == "PrepareAbort" and found.partitions == [place]

            wait_for("the end of its time", waits_for_the_old_node, timeout_s=30)
            assert admin.describe_transaction("patient").state == "Ongoing"
        assert count(everybody, "patient") == [0] * PARTITIONS
        become(cluster, 2, TODAY)
        end_for_sure(patient.commit, everybody.reader.stopping)
        ended(cluster, "late")
        everybody.wait_for_commits()
    wait_for("what was committed", lambda: count(everybody, "patient") == [1] * PARTITIONS, timeout_s=30)
    assert count(everybody, "late") == [0] * PARTITIONS


def raise_level(cluster: MixedCluster) -> None:
    said = penstock("cluster", "features", "upgrade", "--yes", "-b", cluster.bootstrap)
    assert (said.code, said.err) == (0, "raised transaction.version from 0 to 2\n")


def is_kept_out(cluster: MixedCluster, node_id: int) -> None:
    """Whoever goes back now ends and says why; the others, and with the newer release it too, go on."""
    node = cluster.nodes[node_id]
    assert node.stop() == 0
    cluster.code[node_id] = cluster.release
    cluster.launch(node_id)
    assert node.child is not None
    assert node.child.wait(60) == 1
    assert node.says(f"broker {node_id} is not registered: UNSUPPORTED_VERSION")
    cluster.code[node_id] = TODAY
    cluster.start(node_id)
    cluster.wait_until_whole()


def judge(cluster: MixedCluster, everybody: Transactions) -> None:
    everybody.finish()
    everybody.judge()
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        open_ones = [each for each in admin.list_transactions() if each.state not in AT_REST]
    assert not open_ones
    exits = cluster.stop()
    assert set(exits.values()) == {0}, f"nodes ended with {exits}\n{cluster.last_words()}"
