"""Several whole nodes on one loop: sockets on the loopback, disks in memory. A node can be crashed and come back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from random import Random
from typing import Any, TypeVar

from penstock.metadata.records import VersionedRecord
from penstock.model.config import BrokerSettings
from penstock.model.ids import NodeId
from penstock.model.ports import Ports
from penstock.server.controller.initial_controllers import InitialController, voters_of
from penstock.server.formatting import format_for, new_uuid
from penstock.server.launch import dev_properties
from penstock.server.loops.ports import SystemClock
from penstock.server.node import Node
from penstock.testing.memory_files import MemoryFiles
from penstock.transport.net import AsyncioNet
from tests.patience import stretched
from tests.walks.data_plane import TurnsOffload

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
QUICK = {
    "penstock.admin.listener": "",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.fetch.timeout.ms": "600",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "50",
    "offsets.topic.num.partitions": "3",
}

STRETCH_MAX = 4.0
"""A session may last so many times as long on a busy machine; tests wait for its end."""


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in taken]


class Cluster:
    """Nodes by id, which are all both broker and controller, unless `roles` says otherwise.

    A `fixed` quorum is named in everybody's settings, any other in the snapshot that the first start finds.
    """

    def __init__(
        self, nodes: int = 3, *, roles: dict[int, str] | None = None, fixed: bool = False, **settings: str
    ) -> None:
        self._fixed = fixed
        self.roles = roles or dict.fromkeys(range(1, nodes + 1), "broker,controller")
        self.disks = {node_id: MemoryFiles() for node_id in self.roles}
        self.nodes: dict[int, Node] = {}
        self.chance = Random(nodes)
        self._given = {
            **stretched(QUICK, STRETCH_MAX),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        ports = free_ports(2 * len(self.roles))
        self.ports = dict(zip(self.roles, ports[::2], strict=True))
        self.controller_ports = dict(zip(self.roles, ports[1::2], strict=True))
        self._controllers = [
            InitialController(NodeId(node_id), "127.0.0.1", self.controller_ports[node_id], new_uuid(self.chance))
            for node_id, role in self.roles.items()
            if "controller" in role
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for at, port in self.ports.items() if "broker" in self.roles[at])

    def settings(self, node_id: int) -> BrokerSettings:
        roles, count = self.roles[node_id], len(self.roles)
        listeners = [f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}"] if "broker" in roles else []
        if "controller" in roles:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}")
        asked = ",".join(f"{each.host}:{each.port}" for each in self._controllers)
        properties = dev_properties("/data", port=9092, overrides=self._given, node_id=node_id, nodes=count)
        properties |= {
            "process.roles": roles,
            "listeners": ",".join(listeners),
            "controller.quorum.bootstrap.servers": asked,
        }
        if self._fixed:
            voters = (f"{each.node_id}@{each.host}:{each.port}" for each in self._controllers)
            properties["controller.quorum.voters"] = ",".join(voters)
            del properties["controller.quorum.bootstrap.servers"]
        return BrokerSettings.load(self.changed(node_id, properties))

    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        """What a kind of cluster of its own makes of a node's properties."""
        return properties

    def first_records(self) -> list[VersionedRecord]:
        """What the snapshots that nodes start from have beside the features."""
        return []

    def make(self, node_id: int) -> Node:
        """A new life on the disk of a node, formatted if it is the first."""
        settings, clock = self.settings(node_id), SystemClock()
        format_for(
            settings,
            files=self.disks[node_id],
            clock=clock,
            random=self.chance,
            own_host="127.0.0.1",
            cluster_id=CLUSTER_ID,
            voters=None if self._fixed else voters_of(self._controllers, "CONTROLLER"),
            records=self.first_records(),
        )
        net = AsyncioNet(asyncio.get_running_loop())
        ports = Ports(clock, self.disks[node_id], net, TurnsOffload(self.chance))
        node = self.nodes[node_id] = Node(settings, ports, random=self.chance, formats_itself=False)
        return node

    async def start(self, *node_ids: int) -> None:
        await asyncio.gather(*(self.make(node_id).start() for node_id in node_ids or self.roles))

    async def stop(self, *node_ids: int) -> None:
        await asyncio.gather(*(self.nodes.pop(node_id).stop() for node_id in node_ids or list(self.nodes)))

    def crash(self, node_id: int) -> None:
        """kill -9 of a process; what it had written stays."""
        self.nodes.pop(node_id).crash()

    @property
    def controller(self) -> int:
        """The node that leads the quorum, as a majority sees it; 0 while there is none."""
        led_by = [int(node.quorum.leader) for node in self.nodes.values() if node.quorum.leader in self.nodes]
        return max((each for each in led_by if 2 * led_by.count(each) > len(self._controllers)), default=0)

    def in_sync(self, topic: str, count: int) -> bool:
        """Whether every partition of a topic has so many replicas in sync, in the eyes of every node."""
        for node in self.nodes.values():
            found = node.control.metadata.image.topic(topic)
            if found is None or any(len(each.isr) != count or each.leader < 0 for each in found.partitions):
                return False
        return True


C = TypeVar("C", bound=Cluster)


def walk(steps: Callable[[Cluster], Coroutine[Any, Any, None]], nodes: int = 3, **said: Any) -> None:
    """Starts a cluster, walks the steps, and ends whatever still runs."""
    walk_in(lambda: Cluster(nodes, **said), steps)


def walk_in(make: Callable[[], C], steps: Callable[[C], Coroutine[Any, Any, None]]) -> None:
    """The same in a cluster of another kind."""

    async def main() -> None:
        cluster = make()
        try:
            await cluster.start()
            await steps(cluster)
        finally:
            for node_id in list(cluster.nodes):
                cluster.crash(node_id)
            await asyncio.sleep(0)

    asyncio.run(main())
