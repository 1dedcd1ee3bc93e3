"""Everything is deleted, and nodes are looked at for what is left of it: in metadata, in memory and on their disks.

Only the cluster's own topics stay, and the directories and entries that are theirs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.client.cluster_view import ClusterView
from penstock.metadata.entities import CONFIG_TOPIC
from penstock.model.errors import PenstockError
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.storage.checkpoints import OFFSET_CHECKPOINTS, OffsetCheckpoint
from penstock.testing.sim.replicas import shards_of
from penstock.testing.sim.trouble import controller_image
from penstock.testing.sim.workload import Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.metadata.image import ClusterImage
    from penstock.model.ids import PartitionKey
    from penstock.server.node import Node
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.world import World

OWN = "__"
"""How the names of the cluster's own topics begin."""

SET_ASIDE = "-stray"
"""How a directory ends that a node found at its start and nobody knew: it is kept, for whoever runs the cluster."""

TIMEOUT_MS = 3_000
RETRY_S = 0.5


class Emptying:
    """Deletes all topics and groups of a cluster that is well; `leftovers` says what has not gone yet."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world, self._plan = world, plan

    def start(self) -> None:
        client = Client(self._world, "sweeper")
        client.run(self._sweep(client))

    async def _sweep(self, client: Client) -> None:
        async with ClusterView(
            self._plan.bootstrap, timeout_ms=TIMEOUT_MS, clock=client.clock, security=self._plan.security()
        ) as view:
            while True:
                for group in self._groups():
                    await self._delete_group(view, group)
                image = controller_image(self._world)
                names = [] if image is None else _topics(image)
                if image is not None and not names and not self._groups():
                    return
                topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
                try:
                    await view.ask_any(DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS))
                except PenstockError as failure:
                    self._world.story.tell("sweeper", str(failure))
                await asyncio.sleep(RETRY_S)

    async def _delete_group(self, view: ClusterView, group: str) -> None:
        try:
            await view.ask(await view.coordinator(group), DeleteGroupsRequest(groups_names=[group]))
        except PenstockError as failure:
            view.forget_coordinator(group)
            self._world.story.tell("sweeper", str(failure))

    def _groups(self) -> list[str]:
        nodes = [machine.node for machine in self._world.machines if machine.node is not None]
        return sorted({group for node in nodes for shard in shards_of(node) for group in shard.table.groups})

    # -- looking

    def leftovers(self) -> Iterator[str]:
        """What is left, in words, and what is seen soonest first: disks are looked at when nothing else is left."""
        image = controller_image(self._world)
        if image is None:
            yield "there is not exactly one controller"
            return
        yield from (f"topic {name} is there" for name in _topics(image))
        yield from (
            f"topic {key.name} is gone and has configs" for key in image.configs if _of_a_user(key.type, key.name)
        )
        running = [(machine, machine.node) for machine in self._world.machines if machine.node is not None]
        yield from (f"{machine.host}: {words}" for machine, node in running for words in _in_memory(node))
        yield from (f"{machine.host}: {words}" for machine, _ in running for words in self._on_disk(machine))

    def _on_disk(self, machine: Machine) -> Iterator[str]:
        disk = machine.disk
        for directory in self._plan.log_dirs(machine.node_id):
            for name in disk.listdir(directory):
                if disk.isdir(f"{directory}/{name}") and not name.startswith(OWN) and not name.endswith(SET_ASIDE):
                    yield f"{directory}/{name} is there"
            for checkpoint in OFFSET_CHECKPOINTS:
                told = OffsetCheckpoint(disk, f"{directory}/{checkpoint}").read()
                yield from (f"{checkpoint} speaks of {name}" for name in told if not name.topic.startswith(OWN))


def _topics(image: ClusterImage) -> list[str]:
    return sorted(topic.name for topic in image.topics.values() if not topic.name.startswith(OWN))


def _of_a_user(kind: int, name: str) -> bool:
    return kind == CONFIG_TOPIC and not name.startswith(OWN)


def _in_memory(node: Node) -> Iterator[str]:
    """Tables of a node that know of something that is no more."""
    for shard in shards_of(node):
        groups = shard.table
        known = {"groups": [*groups.groups], "positions": [*groups.offsets], "topics": [*groups.offset_topics]}
        for what, names in known.items():
            if names:
                yield f"its coordinator has {what}: {', '.join(sorted(names)[:3])}"
    broker = node._broker
    if broker is None:
        return
    partitions, store = broker.partitions, broker.store
    own = {hosted.key for hosted in partitions if hosted.name.topic.startswith(OWN)}
    tables: dict[str, Iterable[PartitionKey]] = {
        "hosted partitions": partitions._hosted, "logs": store.logs, "future logs": store.futures,
        "lost logs": store._lost, "compacted": partitions.tables.compacted, "doomed": partitions.tables.doomed,
        "flushed by time": partitions.tables.flushed_by_time, "followed": broker.followers._followed,
        "moves": broker.relocations._moves, "uncleanable": broker.compaction._uncleanable,
    }  # fmt: skip
    for name, table in tables.items():
        if left := [key for key in table if key not in own]:
            yield f"{name}: {len(left)} are left"
    if len(store.departures):
        yield f"{len(store.departures)} logs have not departed"
