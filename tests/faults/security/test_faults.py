"""A secured cluster under faults that overlap: nothing acknowledged is lost, everyone goes on, and nobody got in.

`make test` has five faults, `make soak PART=security` a hundred. PENSTOCK_SEED draws other ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.blocking import Admin
from penstock.client.admin.acls import Acl
from penstock.client.admin.scram_users import ScramPassword
from tests.faults.cluster import readers, writers
from tests.faults.cluster.faults import LINKS, Fault
from tests.faults.cluster.hosts import new_network
from tests.faults.cluster.load import Load
from tests.faults.cluster.schedule import Planner
from tests.faults.cluster.siege import Siege
from tests.faults.counts import MINUTES, SOAKING, rounds
from tests.faults.security.cluster import ADMIN, SecuredCluster
from tests.faults.security.entry import Person
from tests.faults.security.faults import EVERY, SecuredScene
from tests.faults.security.intruders import Intruders
from tests.faults.security.rights import FAVOURS, Rights

TOPIC, PARTITIONS = "ledger", 3
TELLER = Person("teller", "teller-secret")
"""Whose clients make the load."""
SEED = os.environ.get("PENSTOCK_SEED", "1")
EVERY_DAY = (
    "kill_leader",
    "isolate_controller",
    "restart_one_after_the_other",
    "renew_a_certificate",
    "change_an_acl_while_the_controller_dies",
)
WRITING = (writers.Confluent, writers.Own)
READING = (readers.ConfluentMember, readers.OwnMember)


def _admit(cluster: SecuredCluster) -> None:
    """The teller may write and read the ledger, in any group."""
    principal = f"User:{TELLER.name}"
    with Admin(bootstrap_servers=cluster.bootstrap, **cluster.login(ADMIN).own) as admin:
        admin.alter_scram_users([ScramPassword(TELLER.name, TELLER.password)]).checked()
        rights = [Acl(principal, operation, "topic", TOPIC) for operation in ("write", "read", "describe")]
        admin.create_acls([*rights, Acl(principal, "read", "group", "*")]).checked()


@contextmanager
def staged(home: Path, *, rate_per_s: float) -> Iterator[tuple[Siege, SecuredScene]]:
    with ExitStack() as stack:
        network = new_network(SEED)
        stack.callback(network.close)
        cluster = stack.enter_context(SecuredCluster(home, host=network.host))
        for topic, partitions in ((TOPIC, PARTITIONS), (FAVOURS, 1)):
            cluster.new_topic(topic, partitions, retention_ms="-1")
        _admit(cluster)
        rights = Rights(cluster)
        intruders = stack.enter_context(Intruders(cluster, TOPIC, home / "burglar.pem"))
        load = stack.enter_context(
            Load(
                cluster, TOPIC, PARTITIONS, writing=WRITING, reading=READING, rate_per_s=rate_per_s,
                login=cluster.login(TELLER),
            )
        )  # fmt: skip
        load.wait_for_progress()
        scene = SecuredScene(cluster, network, load, {}, {}, rights=rights, intruders=intruders)
        siege = Siege(scene, menu=EVERY)
        stack.callback(siege.abandon)
        yield siege, scene


def besiege(siege: Siege, scene: SecuredScene, faults: Mapping[str, Fault], count: int) -> None:
    chosen = [each for name, each in faults.items() if scene.network.can_cut or name not in LINKS]
    waves = Planner(f"{SEED}-secured", [each.kind for each in chosen], nodes=len(scene.node_ids)).waves(count)
    for _ in rounds(fast=count, full=count):
        wave = next(waves, None)
        if wave is None:
            break
        siege.endure(wave)
        scene.rights.check()
        scene.intruders.check()
    scene.load.finish()
    exits = scene.cluster.stop()
    assert set(exits.values()) == {0}, f"nodes ended with {exits}\n{scene.cluster.last_words()}"
    scene.intruders.check()
    changed, tried = dict(scene.rights.changes), scene.intruders.tried.total()
    print(f"\nsecured, seed {SEED}: {siege.summary()}; {scene.load.history.summary()}")
    print(f"changed: {changed}; intruders tried {tried} times")


@pytest.mark.timeout(240)
def test_five_faults_lose_nothing_and_let_nobody_in(tmp_path: Path) -> None:
    with staged(tmp_path, rate_per_s=40) as (siege, scene):
        besiege(siege, scene, {name: EVERY[name] for name in EVERY_DAY}, len(EVERY_DAY))
        assert scene.rights.changes["ACLs"] == 1


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 600)
def test_a_hundred_faults_lose_nothing_and_let_nobody_in(tmp_path: Path) -> None:
    assert SOAKING
    with staged(tmp_path, rate_per_s=20) as (siege, scene):
        besiege(siege, scene, EVERY, int(os.environ.get("PENSTOCK_FAULTS", "100")))
