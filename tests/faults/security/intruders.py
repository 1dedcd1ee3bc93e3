"""Those who knock all the time and are never to be let in, whatever happens to the cluster meanwhile.

An attempt that ends in silence, an alert or a refusal is one that failed, as it should. Whoever hears what only a guest
may hear is noted, with the way in.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from penstock.certificates import Role, issue_client, write_issued
from tests.compat.batches import Record, encode_batch
from tests.compat.cluster import ClusterNode, view_over
from tests.compat.wire import (
    API_VERSIONS,
    Connection,
    fetch_request,
    produce_reply,
    produce_request,
    request,
)
from tests.faults.security.cluster import STRANGER, WATCHER, SecuredCluster
from tests.faults.security.entry import LoginRefused, Person, SecuredConnection

log = logging.getLogger(__name__)

NOT_YOURS = 29
KNOCK_S = 1.0
PAUSE_S = 0.05

Way = Callable[[ClusterNode], bool]
"""One attempt at a node; whether it got in. OSError when it did not even come so far."""


class Intruders:
    """Runs between `with` and its end."""

    def __init__(self, cluster: SecuredCluster, topic: str, foreign: Path) -> None:
        """`foreign` is where a certificate of the clients' authority goes."""
        self._cluster, self._topic, self._foreign = cluster, topic, foreign
        authority = cluster.certificates.directory.open(Role.CLIENTS)
        write_issued(issue_client(authority, "burglar", now=datetime.now(UTC)), foreign)
        self.tried: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """Attempts that were answered with a no, and did not just end."""
        self.let_in: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="intruders")

    def __enter__(self) -> Intruders:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def check(self) -> None:
        """Nobody got in, and everybody tried; those who may log in were told no."""
        assert not self.let_in, f"{len(self.let_in)} got in: {self.let_in[:5]}"
        idle = [way.__name__ for way in self._ways() if not self.tried[way.__name__]]
        assert not idle, f"nobody tried {idle}"
        assert self.refused["write_without_right"]
        assert self.refused["read_without_right"]

    def _run(self) -> None:
        for way, node in itertools.cycle(itertools.product(self._ways(), self._cluster.nodes.values())):
            if self._stopping.wait(PAUSE_S):
                return
            self._knock(way, node)

    def _knock(self, way: Way, node: ClusterNode) -> None:
        self.tried[way.__name__] += 1
        try:
            got_in = way(node)
        except LoginRefused:
            self.refused[way.__name__] += 1
            return
        except OSError:
            return
        except Exception as strange:
            log.exception("%s at node %d", way.__name__, node.node_id)
            self.let_in.append(f"{way.__name__} at node {node.node_id}: {strange!r}")
            return
        if got_in:
            self.let_in.append(f"{way.__name__} at node {node.node_id}, {time.ctime()}")
        else:
            self.refused[way.__name__] += 1

    def _ways(self) -> list[Way]:
        return [
            self.speak_in_the_clear,
            self.come_without_login,
            self.guess_a_password,
            self.write_without_right,
            self.read_without_right,
            self.pass_for_a_node,
            self.come_to_nodes_without_certificate,
            self.find_a_certificate_of_a_node,
        ]

    # -- at the clients' listener

    def _secured(self, node: ClusterNode, person: Person | None) -> SecuredConnection:
        where = (node.host.address, node.host.port)
        return SecuredConnection(*where, self._cluster.trusting(), person, timeout_s=KNOCK_S)

    def speak_in_the_clear(self, node: ClusterNode) -> bool:
        with Connection(node.host.address, node.host.port, timeout_s=KNOCK_S) as connection:
            return bool(view_over(connection, []).brokers)

    def come_without_login(self, node: ClusterNode) -> bool:
        with self._secured(node, None) as connection:
            return bool(view_over(connection, []).brokers)

    def guess_a_password(self, node: ClusterNode) -> bool:
        with self._secured(node, Person(WATCHER.name, "guessed")):
            return True

    def write_without_right(self, node: ClusterNode) -> bool:
        batch = encode_batch([Record(b"intruder")], base_timestamp_ms=int(time.time() * 1000))
        with self._secured(node, STRANGER) as connection:
            reply = produce_reply(connection.call(produce_request(self._topic, 0, batch, acks=-1, timeout_ms=500)))
        return reply.error != NOT_YOURS

    def read_without_right(self, node: ClusterNode) -> bool:
        with self._secured(node, STRANGER) as connection:
            reply = connection.call(fetch_request(self._topic, 0, 0, max_wait_ms=0))
        reply.take("ihi")  # throttle time, error, session
        assert reply.one("i") == 1, "one topic"
        reply.text()
        assert reply.one("i") == 1, "one partition"
        _partition, error = reply.take("ih")
        return error != NOT_YOURS

    # -- at the nodes' listeners

    def at_nodes_door(self, node: ClusterNode, certificate: Path | None, person: Person | None) -> bool:
        """Whether either of a node's inner doors opens so far that it speaks of itself."""
        for port in (self._cluster.replication_port(node), node.host.controller_port):
            context = self._cluster.trusting(certificate)
            try:
                with SecuredConnection(node.host.address, port, context, person, timeout_s=KNOCK_S) as connection:
                    connection.call(request(API_VERSIONS, 0, b""))
                    return True
            except OSError:
                continue
        return False

    def pass_for_a_node(self, node: ClusterNode) -> bool:
        return self.at_nodes_door(node, self._foreign, None)

    def come_to_nodes_without_certificate(self, node: ClusterNode) -> bool:
        return self.at_nodes_door(node, None, None)

    def find_a_certificate_of_a_node(self, node: ClusterNode) -> bool:
        """A key alone opens nothing: there is a password, too."""
        stolen = self._cluster.certificates.directory.node(node.node_id)
        return self.at_nodes_door(node, stolen, Person(f"node-{node.node_id}", "guessed"))
