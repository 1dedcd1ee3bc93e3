"""What can go wrong with a secured cluster: processes and links as everywhere, and what is changed about security.

What takes long (certificates are looked at every ten seconds) is done beside the rest, so that other faults meet it.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.certificates import leaf_of
from penstock.transport.tls.reload import LOOK_INTERVAL_MS
from tests.cli.command import penstock
from tests.compat.cluster import ClusterNode
from tests.compat.processes import TimedOut, wait_for
from tests.faults.cluster.faults import MENU, STOP_S, Fault, Scene, end_by_kill
from tests.faults.cluster.readers import Reader
from tests.faults.cluster.schedule import Kind, Takes
from tests.faults.cluster.writers import Writer
from tests.faults.security.cluster import SecuredCluster
from tests.faults.security.entry import SecuredConnection
from tests.faults.security.intruders import Intruders
from tests.faults.security.rights import Rights

log = logging.getLogger(__name__)

SEEN_S = 60.0
"""A node looks at its files every ten seconds, if it runs."""
BACK_S = 10.0
READ_ANEW = "has read its certificates anew"
LISTENERS = 3


class Beside:
    """Work in a thread. What went wrong in it is told to whoever waits for its end."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._failures: list[BaseException] = []
        self._work = work
        self._thread = threading.Thread(target=self._go, name="beside", daemon=True)
        self._thread.start()

    def _go(self) -> None:
        try:
            self._work()
        except BaseException as failure:
            self._failures.append(failure)

    def join(self) -> None:
        self._thread.join()
        if self._failures:
            raise self._failures[0]


@dataclass
class SecuredScene(Scene):
    cluster: SecuredCluster
    rights: Rights = field(kw_only=True)
    intruders: Intruders = field(kw_only=True)
    certificates: threading.Lock = field(default_factory=threading.Lock)
    """Whoever renews or rotates has the directory for itself."""
    under_way: list[Beside] = field(default_factory=list)
    """What needs nodes that other faults have taken, so that nobody can wait for it before these have ended."""

    def begin(self, work: Callable[[], object]) -> None:
        self.under_way.append(Beside(work))

    def settle(self) -> None:
        while self.under_way:
            self.under_way.pop(0).join()


SecuredBody = Callable[[SecuredScene, ClusterNode, random.Random], Iterator[None]]
SECURITY: dict[str, Fault] = {}


def fault(
    *,
    takes: Takes = Takes.NOTHING,
    crashes: bool = False,
    lasts_s: tuple[float, float] = (0.5, 5.0),
    whom: str = "any",
) -> Callable[[SecuredBody], SecuredBody]:
    def put(body: SecuredBody) -> SecuredBody:
        name = body.__name__

        def of_secured(scene: Scene, node: ClusterNode, chance: random.Random) -> Iterator[None]:
            assert isinstance(scene, SecuredScene), "these faults are of secured clusters"
            return body(scene, node, chance)

        SECURITY[name] = Fault(Kind(name, takes, False, crashes, lasts_s), of_secured, whom)
        return body

    return put


# -- processes


@fault(takes=Takes.EVERY_PROCESS, lasts_s=(2.0, 4.0))
def restart_one_after_the_other(scene: SecuredScene, _node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    rolling = Beside(lambda: roll(scene.cluster))
    yield
    rolling.join()


def roll(cluster: SecuredCluster) -> None:
    """Stops each node and starts it again, when the one before serves; one that is cut off is not waited for longer."""
    for node in cluster.nodes.values():
        child = node.child
        assert child is not None
        os.kill(child.pid, signal.SIGTERM)
        code = child.wait(STOP_S)
        assert code == 0, f"node {node.node_id} ended with {code} after SIGTERM\n{child.tail()}"
        node.child = None
        cluster.launch(node.node_id)
        # Links that another fault has cut are mended only after this one has ended.
        with suppress(TimedOut):
            cluster.wait_until_serving(node.node_id, timeout_s=BACK_S)


# -- certificates


class Seen:
    """Whether a node has read its files since this was made: by itself, or because it was started again."""

    def __init__(self, node: ClusterNode) -> None:
        self._node, self._child, self._size = node, node.child, node.log.stat().st_size

    def now(self) -> bool:
        if self._node.child is not self._child:
            return self._node.running
        with self._node.log.open("rb") as file:
            file.seek(self._size)
            return file.read().decode(errors="replace").count(READ_ANEW) >= LISTENERS


def _everybody_sees(scene: SecuredScene, change: Callable[[], object]) -> None:
    """All listeners have read the files, and whoever dials had the ten seconds that the guide asks for."""
    looks = [Seen(node) for node in scene.cluster.nodes.values()]
    change()
    left_until = time.monotonic() + LOOK_INTERVAL_MS / 1_000

    def seen() -> bool:
        return time.monotonic() >= left_until and all(look.now() for look in looks)

    try:
        wait_for("all nodes to read their files", seen, timeout_s=SEEN_S)
    except AssertionError as failure:
        raise AssertionError(f"{failure}\n{scene.cluster.last_words(30)}") from None


def _cert(scene: SecuredScene, *words: str | Path) -> None:
    said = penstock("cert", *words, "--dir", scene.cluster.certificates.directory.path)
    assert said.code == 0, said


def _shows(scene: SecuredScene, node: ClusterNode, serial: int) -> bool:
    from cryptography.x509 import load_der_x509_certificate

    ports = (node.host.port, scene.cluster.replication_port(node), node.host.controller_port)
    own = scene.cluster.certificates.directory.node(node.node_id)
    for port in ports:
        try:
            with SecuredConnection(node.host.address, port, scene.cluster.trusting(own), timeout_s=1) as connection:
                if load_der_x509_certificate(connection.certificate).serial_number != serial:
                    return False
        except OSError:
            return False
    return True


def _wait_until_shown(scene: SecuredScene, node: ClusterNode) -> None:
    serial = leaf_of(scene.cluster.certificates.directory.node(node.node_id)).serial_number
    what = f"node {node.node_id} to show its new certificate"
    wait_for(what, lambda: _shows(scene, node, serial), timeout_s=SEEN_S, pause_s=0.2)


@fault(lasts_s=(1.0, 3.0))
def renew_a_certificate(scene: SecuredScene, node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """`penstock cert renew`, and the node shows it at all its listeners, without a restart."""

    def work() -> None:
        with scene.certificates:
            _cert(scene, "renew", scene.cluster.certificates.directory.node(node.node_id))
            _wait_until_shown(scene, node)

    scene.begin(work)
    yield


@fault(lasts_s=(5.0, 10.0))
def rotate_the_authority(scene: SecuredScene, _node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    """The three steps of `penstock cert rotate-ca`; in the end a certificate of the old authority opens nothing."""

    def work() -> None:
        directory = scene.cluster.certificates.directory
        with scene.certificates:
            former = scene.cluster.home / "former.pem"
            former.touch(mode=0o600)
            former.write_bytes(directory.node(1).read_bytes())
            _everybody_sees(scene, lambda: _cert(scene, "rotate-ca", "cluster", "begin"))
            # Clients that read whom they trust only once are given it again.
            begin_anew([client for client in (*scene.load.writers, *scene.load.readers) if client.reads_trust_once])
            _cert(scene, "rotate-ca", "cluster", "switch")
            _everybody_sees(scene, lambda: _cert(scene, "renew", "--all"))
            _everybody_sees(scene, lambda: _cert(scene, "rotate-ca", "cluster", "finish", "--yes"))
            for node in scene.cluster.nodes.values():
                _wait_until_serving(scene, node)
                assert not scene.intruders.at_nodes_door(node, former, None), f"node {node.node_id} trusts the old one"

    scene.begin(work)
    yield


def begin_anew(clients: Sequence[Writer | Reader]) -> None:
    """Returns when all of them have begun again, with the settings that they have now."""
    for client in clients:
        client.anew.set()

    def waiting() -> list[str]:
        return [client.name for client in clients if client.anew.is_set()]

    wait_for("clients to begin anew", lambda: not waiting(), timeout_s=SEEN_S)


def _wait_until_serving(scene: SecuredScene, node: ClusterNode) -> None:
    wait_for(f"node {node.node_id} to serve", lambda: scene.cluster.serves(node), timeout_s=SEEN_S)


# -- rights and passwords, while nodes crash


def _meanwhile(scene: SecuredScene, node: ClusterNode, change: Callable[[], None]) -> Iterator[None]:
    scene.begin(change)
    end_by_kill(node)
    yield
    scene.cluster.launch(node.node_id)


@fault(takes=Takes.PROCESS, crashes=True, whom="controller")
def change_an_acl_while_the_controller_dies(
    scene: SecuredScene, node: ClusterNode, _chance: random.Random
) -> Iterator[None]:
    yield from _meanwhile(scene, node, scene.rights.change_acl)


@fault(takes=Takes.PROCESS, crashes=True, whom="controller")
def change_a_password_while_the_controller_dies(
    scene: SecuredScene, node: ClusterNode, _chance: random.Random
) -> Iterator[None]:
    yield from _meanwhile(scene, node, scene.rights.change_password)


@fault()
def change_an_acl(scene: SecuredScene, _node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    scene.begin(scene.rights.change_acl)
    yield


@fault()
def change_a_password(scene: SecuredScene, _node: ClusterNode, _chance: random.Random) -> Iterator[None]:
    scene.begin(scene.rights.change_password)
    yield


FROM_EVERYWHERE = (
    "kill_leader", "kill_controller", "kill_any", "kill_and_start_at_once", "kill_all", "stop_leader",
    "stop_controller", "pause_leader", "pause_controller", "isolate_leader", "isolate_controller", "deafen_leader",
    "mute_controller", "cut_one_link", "split", "lose_packets", "delay_packets",
)  # fmt: skip
EVERY: dict[str, Fault] = {**{name: MENU[name] for name in FROM_EVERYWHERE}, **SECURITY}
