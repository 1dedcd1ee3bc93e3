"""A whole cluster in the calling process: every node has a thread and a loop of its own, and all share one clock.

    with cluster(nodes=3) as c:
        ...                       # any Kafka client, pointed at c.bootstrap_servers
        c.kill(c.leader_of("orders", 0))

The nodes are those of `penstock server start`; they speak to each other over the loopback. Timeouts are short, so that
a node that is killed is missed within about three seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.testing.embedded import EmbeddedBroker, property_text, whole_ms

if TYPE_CHECKING:
    from penstock.certificates import ClientFiles
    from penstock.metadata.entities import PartitionImage
    from penstock.metadata.image import ClusterImage
    from penstock.metadata.records import VersionedRecord
    from penstock.model.config import BrokerSettings
    from penstock.server.node import Node
    from penstock.testing.ancient import Past
    from penstock.testing.moving_time import MovingClock
    from penstock.testing.security import EmbeddedSecurity

T = TypeVar("T")

READY_TIMEOUT_S = 60.0
WAIT_TIMEOUT_S = 60.0
LOOK_EVERY_S = 0.01

QUICK = {
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1500",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class EmbeddedNode(EmbeddedBroker):
    """One node of an `EmbeddedCluster`. What it can do alone is here; time and company are the cluster's."""

    def __init__(self, cluster: EmbeddedCluster, node_id: int, port: int) -> None:
        super().__init__(cluster.data_dir, {}, passing=True)
        self._cluster, self.node_id, self._port, self._security = cluster, node_id, port, cluster.security
        self._clock, self._thread_name = cluster.clock, f"penstock-broker-{node_id}"

    def kill(self) -> None:
        """Ends it as kill -9 would: nothing is flushed, nothing handed over, connections break."""
        self.resume()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.kill()

    def _all_addresses(self) -> str:
        return self._cluster.bootstrap_servers

    def advance(
        self, *, ms: int = 0, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Nodes share one clock, so it moves for all of them."""
        self._cluster.advance(ms=ms, seconds=seconds, minutes=minutes, hours=hours, days=days)

    def _make_node(self) -> Node:
        from penstock.server.launch import Given, configured_node
        from penstock.testing.offload import CountingOffload
        from penstock.testing.passing_files import PassingFiles

        self._offload = CountingOffload()
        return configured_node(
            self._cluster.settings_of(self.node_id),
            given=Given(self.clock, self._offload, PassingFiles()),
        )


class EmbeddedCluster:
    """A cluster of `nodes` nodes, each broker and controller. Nodes are numbered from 1, as in `penstock dev`."""

    def __init__(self, data_dir: str, nodes: int, settings: Mapping[str, object], *, secure: bool = False) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        from penstock.testing.moving_time import MovingClock

        self.data_dir = data_dir
        self.clock: MovingClock = MovingClock()
        self._settings = {name: property_text(value) for name, value in settings.items()}
        self.security: EmbeddedSecurity | None = None
        if secure:
            from penstock.testing.security import EmbeddedSecurity

            self.security = EmbeddedSecurity(data_dir)
        ports = _free_ports(2 * nodes)
        self._controllers = dict(enumerate(ports[nodes:], 1))
        self.nodes = {node_id: EmbeddedNode(self, node_id, port) for node_id, port in enumerate(ports[:nodes], 1)}
        self._cluster_id = ""

    @property
    def bootstrap_servers(self) -> str:
        """What any Kafka client takes as `bootstrap.servers`: all nodes, those that are down too."""
        return ",".join(node.bootstrap_servers for node in self.nodes.values())

    @property
    def client_settings(self) -> dict[str, Any]:
        """Keywords for Penstock's own clients: `Producer(**c.client_settings)`. Of a secured cluster with its user."""
        if self.security is None:
            return {"bootstrap_servers": self.bootstrap_servers}
        return self.security.client_settings(self.bootstrap_servers)

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The same for clients that are made of librdkafka, such as confluent-kafka."""
        if self.security is None:
            return {"bootstrap.servers": self.bootstrap_servers}
        return self.security.librdkafka_settings(self.bootstrap_servers)

    @property
    def client_files(self) -> ClientFiles:
        """Files for foreign clients of a secured cluster: `java`, `librdkafka`, and `trusted`, its authority in PEM."""
        if self.security is None:
            raise RuntimeError("the cluster is an open one; cluster(secure=True) makes a secured one")
        return self.security.files

    # -- coming and going

    def begin(self, past: Past | None = None) -> None:
        """Formats the nodes and starts them all; returns when every one serves clients."""
        self._format(list(self.nodes))
        if past is not None:
            from penstock.testing.passing_files import PassingFiles

            for node_id in self.nodes:
                past.lay_down(PassingFiles(), self.settings_of(node_id), self.clock.now_ms())
        self.start(*self.nodes)

    def kill(self, node_id: int) -> None:
        """kill -9 of a node: nothing is flushed, nothing handed over."""
        self._node(node_id).kill()

    def stop(self, node_id: int) -> None:
        """Stops a node cleanly: it hands over what it leads."""
        self._node(node_id).stop()

    def start(self, *node_ids: int) -> None:
        """Brings nodes back, all at once; returns when they serve, which takes a majority of the controllers."""
        away = [node for node in map(self._node, node_ids) if not node.running]
        for node in away:
            node._begin()
        for node in away:
            node._wait_ready(READY_TIMEOUT_S)

    def restart(self, node_id: int) -> None:
        self.stop(node_id)
        self.start(node_id)

    def add(self) -> int:
        """A node more, broker only; answers its id. It holds nothing until partitions are moved to it."""
        node_id = max(self.nodes) + 1
        (port,) = _free_ports(1)
        self.nodes[node_id] = EmbeddedNode(self, node_id, port)
        self._format([node_id])
        self.start(node_id)
        return node_id

    def close(self) -> None:
        """Ends all nodes. Nobody wants their data, so an orderly end is not worth the time."""
        for node in self.nodes.values():
            node.kill()

    # -- time

    def advance(
        self, *, ms: int = 0, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Lets that much time pass for all nodes, at once; returns when what fell due has been done.

        Longer than a session it is to them as if all had been frozen for so long: they may elect anew. So this returns
        when there is a controller and every running broker is alive again.
        """
        from concurrent.futures import ThreadPoolExecutor

        total_ms = whole_ms(ms, seconds, minutes, hours, days)
        running = self._up()
        self.clock.move(total_ms)
        with ThreadPoolExecutor(max(1, len(running))) as all_at_once:
            list(all_at_once.map(lambda node: node._call(node._advance(total_ms)), running))
        self._wait("every broker to be alive after time was moved", self._all_alive)

    # -- looking

    @property
    def controller(self) -> int:
        """The node that leads the metadata quorum; waits for one to be elected."""
        return self._wait("a controller", self._controller_now)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition; waits for one that is up."""

        def look() -> int | None:
            found = self._look(lambda image: _partition(image, topic, partition))
            alive = found is not None and found.leader in self.nodes and self.nodes[found.leader].running
            return found.leader if found is not None and alive else None

        return self._wait(f"a leader of {topic}-{partition}", look)

    def isr_of(self, topic: str, partition: int = 0) -> list[int]:
        """The in-sync replicas of a partition, as the controller has them."""
        found = self._look(lambda image: _partition(image, topic, partition))
        return [] if found is None else list(found.isr)

    def wait_until_in_sync(self, topic: str | None = None) -> None:
        """Returns when every partition (of `topic`) has a leader and all its replicas are in sync."""

        def look() -> bool:
            return bool(self._all_alive() and self._look(lambda image: _in_sync(image, topic)))

        self._wait(f"all replicas of {topic or 'all topics'} to be in sync", look)

    def _controller_now(self) -> int | None:
        leading = [(node.node.quorum.epoch, node.node_id) for node in self._up() if node.node.quorum.leading]
        return max(leading)[1] if leading else None

    def _all_alive(self) -> bool:
        up = {node.node_id for node in self._up()}
        return bool(self._look(lambda image: up == {b.id for b in image.brokers.values() if b.active} & up))

    def _look(self, read: Callable[[ClusterImage], T]) -> T | None:
        """What somebody reads in the image that the active controller has published; None while there is none."""
        leader = self._controller_now()
        if leader is None:
            return None
        node = self.nodes[leader]

        async def on_its_loop() -> T:
            return read(node.node.services.metadata.image)

        found: T = node._call(on_its_loop())
        return found

    def _wait(self, what: str, probe: Callable[[], T | None]) -> T:
        deadline = time.monotonic() + WAIT_TIMEOUT_S
        while not (found := probe()):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{what}: not within {WAIT_TIMEOUT_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
        return found

    def _up(self) -> list[EmbeddedNode]:
        return [node for node in self.nodes.values() if node.running]

    def _node(self, node_id: int) -> EmbeddedNode:
        if node_id not in self.nodes:
            raise ValueError(f"there is no node {node_id}; there are {', '.join(map(str, self.nodes))}")
        return self.nodes[node_id]

    def controller_address(self, node_id: int) -> str:
        """Where the other controllers reach a node."""
        return f"127.0.0.1:{self._controllers[node_id]}"

    # -- making nodes

    def settings_of(self, node_id: int) -> BrokerSettings:
        """What a node runs with. The cluster's own settings come after those of the test kit."""
        from penstock.server.launch import settings_of

        return settings_of(self._properties(node_id))

    def _properties(self, node_id: int) -> dict[str, str]:
        from penstock.server.launch import dev_properties

        listeners = [f"PLAINTEXT://{self.nodes[node_id].bootstrap_servers}"]
        if node_id in self._controllers:
            listeners.append(f"CONTROLLER://{self.controller_address(node_id)}")
        own = {
            "listeners": ",".join(listeners),
            "controller.quorum.bootstrap.servers": ",".join(map(self.controller_address, self._controllers)),
            "penstock.admin.listener": "127.0.0.1:0",
        }
        overrides = {**QUICK, **own, **self._settings}
        if self.security is not None:
            overrides = {**QUICK, **own, **self._secured(self.security, node_id)}
        return dev_properties(self.data_dir, port=0, overrides=overrides, node_id=node_id, nodes=len(self._controllers))

    def _secured(self, security: EmbeddedSecurity, node_id: int) -> dict[str, str]:
        from penstock.certificates.node_settings import Ports

        # Brokers hear from the metadata where the others are, so any free port will do.
        ports = Ports(self.nodes[node_id]._port, 0, self._controllers.get(node_id))
        return security.settings(node_id, ports, self._settings)

    def _format(self, node_ids: list[int]) -> None:
        """Nodes that come first are told who votes; those that come later only which cluster they belong to."""
        from penstock.server.launch import format_node, new_voters

        records: Sequence[VersionedRecord] = ()
        if self.security is not None:
            self.security.prepare(node_ids)
            records = () if self._cluster_id else self.security.first_user()
        every = [self.settings_of(node_id) for node_id in node_ids]
        voters = None if self._cluster_id else new_voters(every)
        if self.security is not None:
            self._cluster_id = self.security.cluster_id
        for settings in every:
            formatted = format_node(
                settings, self._cluster_id or None, ignore_formatted=True, standalone=False, voters=voters,
                records=records,
            )  # fmt: skip
            self._cluster_id = formatted.cluster_id


def _partition(image: ClusterImage, topic: str, partition: int) -> PartitionImage | None:
    found = image.topic(topic)
    return None if found is None else found.get(partition)


def _in_sync(image: ClusterImage, topic: str | None) -> bool:
    return all(
        each.has_leader and set(each.isr) == set(each.replicas)
        for found in image.topics.values()
        if topic is None or found.name == topic
        for each in found.partitions
    )


def _free_ports(count: int) -> list[int]:
    """Ports of the loopback that were free just now, all different."""
    import socket

    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def cluster(
    nodes: int = 3,
    settings: Mapping[str, object] | None = None,
    *,
    past: Past | None = None,
    secure: bool = False,
) -> Iterator[EmbeddedCluster]:
    """A running cluster. `settings` are broker properties by their Kafka names, for all nodes. With a `past` it begins
    old (`penstock.testing.ancient`). A `secure` one is as `broker(secure=True)`, with certificates among its nodes."""
    import tempfile

    if secure and past is not None:
        raise ValueError("a cluster with a past is an open one")

    # A node that was killed may have a write under way in a thread.
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as scratch:
        running = EmbeddedCluster(scratch, nodes, settings or {}, secure=secure)
        try:
            running.begin(past)
            yield running
        finally:
            running.close()
