"""A cluster of processes, Penstock's or Apache Kafka's: formatted together, started, hurt, looked at, stopped.

`PenstockCluster` and `ApacheCluster` differ in the commands alone, so that whatever is asked of one can be asked of the
other. Nodes are numbered from 1; those named in `controllers` vote.
"""

from __future__ import annotations

import signal
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.compat.apache import jars
from tests.compat.apache.node import QUICK_JVM, new_cluster_id
from tests.compat.apache.tools import java_command
from tests.compat.processes import Child, free_ports, wait_for
from tests.compat.wire import (
    CREATE_TOPICS,
    METADATA,
    METADATA_VERSION,
    BrokerError,
    Connection,
    request,
    text,
)
from tests.patience import stretched

BOTH, BROKER, CONTROLLER = "broker,controller", "broker", "controller"
START_TIMEOUT_S = 90.0
# Missed within two seconds, elected within one: short, and still longer than an idle machine stalls.
QUICK = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "200",
    "replica.socket.timeout.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "6",
    "group.min.session.timeout.ms": "1000",
}


class Host(NamedTuple):
    """Where a node listens, and what its command line begins with."""

    name: str
    address: str
    port: int
    controller_port: int
    prefix: tuple[str, ...] = ()


def loopback_host(_node_id: int) -> Host:
    port, controller_port = free_ports(2)
    return Host("localhost", "127.0.0.1", port, controller_port)


class Partition(NamedTuple):
    """What Metadata says of a partition."""

    topic: str
    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class View(NamedTuple):
    """The cluster in the eyes of one broker: who is alive and where, and what is where."""

    addresses: dict[int, str]
    partitions: tuple[Partition, ...]
    reply_bytes: int

    @property
    def brokers(self) -> frozenset[int]:
        return frozenset(self.addresses)


def view(address: str, topics: Sequence[str] | None = None, timeout_s: float = 3.0) -> View:
    """Asks one broker. OSError when it does not answer."""
    host, _, port = address.rpartition(":")
    with Connection(host, int(port), timeout_s=timeout_s) as connection:
        return view_over(connection, topics)


def view_over(connection: Connection, topics: Sequence[str] | None = None) -> View:
    """What the broker at the other end sees."""
    wanted = struct.pack(">i", -1 if topics is None else len(topics)) + b"".join(map(text, topics or ()))
    reply = connection.call(request(METADATA, METADATA_VERSION, wanted))
    addresses = {}
    for _ in range(reply.one("i")):
        node_id, name, number, _rack = reply.one("i"), reply.text(), reply.one("i"), reply.text()
        addresses[node_id] = f"{name}:{number}"
    reply.take("i")
    found = []
    for _ in range(reply.one("i")):
        _error, topic, _internal = reply.one("h"), reply.text() or "", reply.one("b")
        for _ in range(reply.one("i")):
            _error, index, leader = reply.take("hii")
            replicas, isr = (reply.take("i" * reply.one("i")) for _ in range(2))
            found.append(Partition(topic, index, leader, replicas, isr))
    return View(addresses, tuple(found), len(reply.data))


def create_topic(
    connection: Connection,
    name: str,
    partitions: int,
    replicas: int,
    configs: Mapping[str, str] | None = None,
    *,
    timeout_ms: int = 60_000,
) -> None:
    """Asks one broker for a topic; underscores in the names of configs stand for dots."""
    configs = configs or {}
    pairs = b"".join(text(key.replace("_", ".")) + text(value) for key, value in configs.items())
    body = struct.pack(">i", 1) + text(name) + struct.pack(">ihi", partitions, replicas, 0)
    body += struct.pack(">i", len(configs)) + pairs + struct.pack(">i?", timeout_ms, False)
    reply = connection.call(request(CREATE_TOPICS, 4, body))
    reply.take("ii")
    reply.text()
    error, message = reply.one("h"), reply.text()
    if error:
        raise BrokerError(f"creating {name}: error {error} {message or ''}")


@dataclass
class ClusterNode:
    """One node: `home/data` is its log directory, `home/server.properties` and `home/server.log` lie beside it."""

    node_id: int
    roles: str
    home: Path
    host: Host
    directory_id: str
    child: Child | None = None
    paused: bool = False

    @property
    def data_dir(self) -> Path:
        return self.home / "data"

    @property
    def config(self) -> Path:
        return self.home / "server.properties"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    @property
    def address(self) -> str:
        return f"{self.host.address}:{self.host.port}"

    @property
    def controller_address(self) -> str:
        return f"{self.host.address}:{self.host.controller_port}"

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.running()

    @property
    def pid(self) -> int:
        assert self.child is not None, f"node {self.node_id} has not been started"
        return self.child.pid

    def kill(self) -> None:
        """kill -9."""
        child, self.child = self.child, None
        self.paused = False
        if child is not None:
            child.kill()

    def stop(self, timeout_s: float = 60) -> int | None:
        """A clean shutdown; answers the exit code, or None for a node that was not running."""
        self.resume()
        child, self.child = self.child, None
        return None if child is None else child.stop(timeout_s)

    def pause(self) -> None:
        """SIGSTOP: it looks dead to all, and does not know it."""
        import os

        if self.running:
            os.kill(self.pid, signal.SIGSTOP)
            self.paused = True

    def resume(self) -> None:
        import os

        if self.paused and self.running:
            os.kill(self.pid, signal.SIGCONT)
        self.paused = False

    def says(self, words: str) -> bool:
        return self.log.exists() and words in self.log.read_text(errors="replace")


class Cluster(ABC):
    """Nodes by their ids. `roles` may name brokers and controllers that are apart; else every node is both."""

    title = ""
    stretch_max = 5.0
    """What a session may last on a busy machine, as a multiple of an idle one's."""

    def __init__(
        self,
        home: Path,
        nodes: int = 3,
        *,
        roles: Mapping[int, str] | None = None,
        properties: Mapping[str, str] | None = None,
        host: Callable[[int], Host] = loopback_host,
    ) -> None:
        self.home = home
        self.cluster_id = new_cluster_id()
        self.given = {**stretched(QUICK, self.stretch_max), **(properties or {})}
        self._host = host
        self.nodes: dict[int, ClusterNode] = {}
        for node_id, role in (roles or dict.fromkeys(range(1, nodes + 1), BOTH)).items():
            self.nodes[node_id] = self._new_node(node_id, role)
        self.voters = {node_id: node for node_id, node in self.nodes.items() if node.is_controller}

    # -- the two kinds

    @abstractmethod
    def command(self, node: ClusterNode) -> list[str]:
        """What runs a node in the foreground."""

    @abstractmethod
    def format_command(self, node: ClusterNode, voters: str) -> list[str]:
        """What formats its directory; `voters` are those of a new cluster, or nothing for a node that joins."""

    # -- properties

    def _new_node(self, node_id: int, roles: str) -> ClusterNode:
        return ClusterNode(node_id, roles, self.home / f"node-{node_id}", self._host(node_id), new_cluster_id())

    def properties(self, node: ClusterNode) -> dict[str, str]:
        brokers = sum(each.is_broker for each in self.nodes.values())
        replicas, min_isr = str(min(3, brokers)), "2" if brokers >= 3 else "1"
        listeners = [f"PLAINTEXT://{node.address}"] if node.is_broker else []
        listeners += [f"CONTROLLER://{node.controller_address}"] if node.is_controller else []
        return {
            "process.roles": node.roles,
            "node.id": str(node.node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.quorum.bootstrap.servers": ",".join(
                each.controller_address for each in self.nodes.values() if each.is_controller
            ),
            "log.dirs": str(node.data_dir),
            "default.replication.factor": replicas,
            "min.insync.replicas": min_isr,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min_isr,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": min_isr,
            **self.given,
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes.values() if node.is_broker)

    # -- coming and going

    def format(self, node_ids: Iterable[int] | None = None) -> None:
        """Writes the properties and formats the directories of nodes, all at once."""
        voters = ",".join(
            f"{node.node_id}@{node.controller_address}:{node.directory_id}" for node in self.voters.values()
        )
        with ThreadPoolExecutor(4) as at_once:
            chosen = [self.nodes[node_id] for node_id in node_ids or self.nodes]
            list(at_once.map(lambda node: self._format(node, voters if node.node_id in self.voters else ""), chosen))

    def _format(self, node: ClusterNode, voters: str) -> None:
        node.home.mkdir(parents=True, exist_ok=True)
        node.config.write_text("".join(f"{name}={value}\n" for name, value in self.properties(node).items()))
        formatting = Child(self.format_command(node, voters), node.home / "format.log")
        assert formatting.wait(timeout_s=60) == 0, f"formatting failed:\n{formatting.tail()}"

    def launch(self, *node_ids: int) -> None:
        """Starts processes and returns at once."""
        for node_id in node_ids or self.nodes:
            node = self.nodes[node_id]
            assert not node.running, f"node {node_id} runs already"
            node.child = Child([*node.host.prefix, *self.command(node)], node.log)

    def start(self, *node_ids: int) -> Self:
        """Starts nodes (all of them, formatted, if none is named) and returns when their brokers serve."""
        if not node_ids:
            self.format()
        self.launch(*node_ids)
        self.wait_until_serving(*node_ids)
        return self

    def wait_until_serving(self, *node_ids: int, timeout_s: float = START_TIMEOUT_S) -> None:
        for node_id in node_ids or self.nodes:
            node = self.nodes[node_id]

            def serves(node: ClusterNode = node) -> bool:
                assert node.child is not None, f"node {node.node_id} was started"
                assert node.child.running(), f"node {node.node_id} ended:\n{node.child.tail()}"
                return not node.is_broker or self.serves(node)

            wait_for(f"node {node_id} to serve", serves, timeout_s=timeout_s, pause_s=0.05)

    def add(self, node_id: int, roles: str = BROKER) -> None:
        """One node more, which joins the cluster that runs; it is no voter."""
        self.nodes[node_id] = self._new_node(node_id, roles)
        self.format([node_id])
        self.start(node_id)

    def stop(self) -> dict[int, int | None]:
        """Stops all cleanly, at once; answers their exit codes."""
        with ThreadPoolExecutor(8) as at_once:
            return dict(zip(self.nodes, at_once.map(ClusterNode.stop, self.nodes.values()), strict=True))

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    # -- looking

    @property
    def brokers(self) -> list[ClusterNode]:
        return [node for node in self.nodes.values() if node.is_broker]

    def connection(self, node: ClusterNode, *, timeout_s: float = 3.0) -> Connection:
        """To a broker, as somebody who may ask it everything. OSError when it does not answer."""
        return Connection(node.host.address, node.host.port, timeout_s=timeout_s)

    def look(self, node: ClusterNode, topics: Sequence[str] | None = None, *, timeout_s: float = 3.0) -> View:
        with self.connection(node, timeout_s=timeout_s) as connection:
            return view_over(connection, topics)

    def serves(self, node: ClusterNode) -> bool:
        try:
            return bool(self.look(node, []).brokers)
        except OSError:
            return False

    def views(self) -> list[View]:
        """What every broker that should run says. OSError when one does not answer."""
        return [self.look(node) for node in self.brokers if node.running and not node.paused]

    def partitions(self, topic: str) -> list[Partition]:
        """A topic's partitions, as the first broker that answers has them."""
        for node in self.brokers:
            if node.running and not node.paused:
                try:
                    return [each for each in self.look(node, [topic]).partitions if each.topic == topic]
                except OSError:
                    continue
        return []

    def leader_of(self, topic: str, partition: int = 0, *, timeout_s: float = 30) -> int:
        """The leader in the eyes of a majority of the brokers that answer; waits for one."""

        def look() -> int:
            named = [
                each.leader for seen in self._answers(topic) for each in seen.partitions if each.index == partition
            ]
            return next((node for node in named if node > 0 and 2 * named.count(node) > len(named)), 0)

        return wait_for(f"a leader of {topic}-{partition}", look, timeout_s=timeout_s, pause_s=0.05)

    def _answers(self, topic: str) -> list[View]:
        found = []
        for node in self.brokers:
            if node.running and not node.paused:
                try:
                    found.append(self.look(node, [topic], timeout_s=1.0))
                except OSError:
                    continue
        return found

    def controller(self, *, timeout_s: float = 30) -> int:
        """The leader of the metadata quorum."""
        from penstock.blocking import Admin
        from penstock.client.errors import ClientError

        up = ",".join(node.address for node in self.brokers if node.running and not node.paused)

        def look() -> int:
            try:
                with Admin(bootstrap_servers=up) as admin:
                    return max(admin.describe_quorum().leader, 0)
            except (ClientError, TimeoutError):
                return 0

        return wait_for("a controller", look, timeout_s=timeout_s, pause_s=0.1)

    def trouble(self) -> str:
        """Why not everything is well, in the eyes of whichever broker sees the most; nothing when all is."""
        expected = frozenset(node.node_id for node in self.brokers)
        gone = [node.node_id for node in self.nodes.values() if not node.running or node.paused]
        if gone:
            return f"nodes {gone} do not run"
        try:
            for seen in self.views():
                if seen.brokers != expected:
                    return f"brokers {sorted(expected - seen.brokers)} are not alive"
                behind = [each for each in seen.partitions if each.leader < 1 or set(each.isr) != set(each.replicas)]
                if behind:
                    return f"{len(behind)} partitions are not whole, such as {behind[0]}"
        except OSError as silent:
            return f"a broker does not answer: {silent!r}"
        return ""

    def wait_until_whole(self, timeout_s: float = 60) -> None:
        """Every node runs, every broker is alive and every replica in sync, in the eyes of every broker."""
        last = ""

        def whole() -> bool:
            nonlocal last
            last = self.trouble()
            ended = [node.node_id for node in self.nodes.values() if node.child is not None and not node.running]
            assert not ended, f"nodes {ended} ended by themselves"
            return not last

        try:
            wait_for("a whole cluster", whole, timeout_s=timeout_s, pause_s=0.1)
        except AssertionError:
            raise AssertionError(f"the cluster is not whole after {timeout_s} s: {last}\n{self.last_words()}") from None

    def last_words(self, lines: int = 12) -> str:
        return "\n".join(
            f"--- node {node.node_id}\n" + "\n".join(node.log.read_text(errors="replace").splitlines()[-lines:])
            for node in self.nodes.values()
            if node.log.exists()
        )

    def new_topic(self, name: str, partitions: int = 1, replicas: int = 3, **configs: str) -> None:
        """Creates a topic and waits until every broker knows its leaders."""
        with self.connection(self.brokers[0], timeout_s=30) as connection:
            create_topic(connection, name, partitions, replicas, configs)
        wait_for(f"leaders of {name}", lambda: self._all_know(name, partitions), timeout_s=60, pause_s=0.02)

    def _all_know(self, topic: str, partitions: int) -> bool:
        for node in self.brokers:
            if node.running and not node.paused:
                try:
                    found = [each for each in self.look(node, [topic]).partitions if each.topic == topic]
                except OSError:
                    return False  # too busy to answer is not yet
                if len(found) != partitions or any(each.leader < 1 for each in found):
                    return False
        return True


class PenstockCluster(Cluster):
    title = "Penstock"

    def command(self, node: ClusterNode) -> list[str]:
        return [*_PENSTOCK, "server", "start", "--config", str(node.config)]

    def format_command(self, node: ClusterNode, voters: str) -> list[str]:
        return [*_PENSTOCK, *_format_words(node, self.cluster_id, voters)]

    def properties(self, node: ClusterNode) -> dict[str, str]:
        return {"penstock.admin.listener": "", **super().properties(node)}


_PENSTOCK = (sys.executable, "-P", "-m", "penstock.cli.main")


class ApacheCluster(Cluster):
    title = f"Apache Kafka {jars.VERSION}"
    jvm: Sequence[str] = QUICK_JVM

    def command(self, node: ClusterNode) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={Path(jars.__file__).with_name('log4j2.properties')}"
        return ["java", *self.jvm, logging, "-cp", jars.broker_class_path(), "kafka.Kafka", str(node.config)]

    def format_command(self, node: ClusterNode, voters: str) -> list[str]:
        _server, *words = _format_words(node, self.cluster_id, voters)
        return java_command("kafka-storage", *words)


def _format_words(node: ClusterNode, cluster_id: str, voters: str) -> list[str]:
    words = ["server", "format", "--config", str(node.config), "--cluster-id", cluster_id]
    if voters:
        return [*words, "--initial-controllers", voters]
    return [*words, "--no-initial-controllers"] if node.is_controller else words
