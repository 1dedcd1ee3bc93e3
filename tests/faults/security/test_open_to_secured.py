"""An open cluster becomes a secured one as the guide says, under load, with a `kill -9` in the middle."""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from pathlib import Path

import pytest

from penstock.blocking import Admin
from penstock.client.errors import ClientError
from tests.compat.cluster import ClusterNode
from tests.compat.wire import answers_metadata
from tests.faults.cluster import readers, writers
from tests.faults.cluster.faults import STOP_S, end_by_kill
from tests.faults.cluster.load import Load
from tests.faults.cluster.logins import Login
from tests.faults.security.faults import begin_anew
from tests.faults.security.moving import PLAIN_PORT, SECURED_PORT, MovingCluster, lines_of, run, steps
from tests.patience import within

log = logging.getLogger(__name__)

TOPIC, PARTITIONS = "orders", 3
"""Where one is killed in `make test`; the soak does it in every restart."""
SEED = os.environ.get("PENSTOCK_SEED", "1")


def restart(cluster: MovingCluster, load: Load, chance: random.Random) -> None:
    """One node after the other, the controller last; in between one of them, as it is at that moment, is killed."""
    active = cluster.active_controller()
    order = sorted(cluster.nodes.values(), key=lambda node: node.node_id == active)
    killed_after = chance.randrange(len(order))
    for number, node in enumerate(order):
        began = time.monotonic()
        _stop_and_start(cluster, node)
        if number == killed_after:
            victim = chance.choice([*cluster.nodes.values()])
            end_by_kill(victim)
            load.wait_for_progress(1)
            cluster.launch(victim.node_id)
        cluster.wait_until_in_sync()
        log.info("node %d is back after %.1f s", node.node_id, time.monotonic() - began)
    load.wait_for_progress()


def _stop_and_start(cluster: MovingCluster, node: ClusterNode) -> None:
    child = node.child
    assert child is not None
    os.kill(child.pid, signal.SIGTERM)
    code = child.wait(STOP_S)
    assert code == 0, f"node {node.node_id} ended with {code}\n{child.tail()}"
    node.child = None
    cluster.write_properties(node)
    cluster.launch(node.node_id)


def move_clients(cluster: MovingCluster, load: Load) -> None:
    """To the listener where they have to log in."""
    trusted = str(cluster.home / "security" / "ca.pem")
    cluster.port = SECURED_PORT
    load.login = Login(
        {
            "security.protocol": "SASL_SSL", "ssl.ca.location": trusted, "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "shop", "sasl.password": "shop-secret",
        },
        {"username": "shop", "password": "shop-secret", "cafile": trusted},
    )  # fmt: skip
    clients = [*load.writers, *load.readers]
    for client in clients:
        client.login, client.bootstrap = load.login, cluster.bootstrap
    begin_anew(clients)
    load.wait_for_progress()


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_guide_takes_an_open_cluster_to_a_secured_one_and_nothing_is_lost(tmp_path: Path) -> None:
    chance = random.Random(f"{SEED}-open")
    walk = steps()
    cluster = MovingCluster(tmp_path)
    start = next(walk)
    assert start.label == "start"
    cluster.lines |= lines_of(start)
    writing, reading = (writers.Confluent, writers.Own), (readers.ConfluentMember, readers.OwnMember)
    restarts = 0
    with cluster:
        cluster.new_topic(TOPIC, PARTITIONS)
        with Load(cluster, TOPIC, PARTITIONS, writing=writing, reading=reading, rate_per_s=40) as load:
            load.wait_for_progress()
            for block in walk:
                if block.label.startswith("restart-"):
                    cluster.lines |= lines_of(block)
                    restart(cluster, load, chance)
                    restarts += 1
                elif block.kind == "properties":
                    text = cluster.here(block.text, cluster.nodes[1])
                    (tmp_path / block.label).write_text(text)
                    move_clients(cluster, load)
                else:
                    printed = run(cluster, block)
                    if "cluster quorum" in block.text:
                        assert printed[0].count("QUORUM://") == printed[0].count("CONTROLLER://") == 3, printed
            load.wait_for_readers()
            load.finish()
            assert restarts == 4
            _assert_closed(cluster, load)
        assert set(cluster.stop().values()) == {0}, cluster.last_words()


def _assert_closed(cluster: MovingCluster, load: Load) -> None:
    """Whoever has no password, or no right, hears nothing; and nobody listens where the cluster was open."""
    for node in cluster.nodes.values():
        for port in (PLAIN_PORT, SECURED_PORT, node.host.controller_port):
            assert not answers_metadata(node.host.address, port), f"node {node.node_id} is open at {port}"
    settings = {"bootstrap_servers": cluster.bootstrap, "default_api_timeout_ms": within(5_000), **load.login.own}
    with Admin(**settings) as shop, pytest.raises(ClientError, match=r"(?i)authoriz"):
        shop.create_topic("of-the-shop", 1)
