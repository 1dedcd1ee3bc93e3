"""A client of a whole cluster: requests go to whoever leads the partition or coordinates the id that they name."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Uuid
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from penstock.transport.dial import Link, LinkError
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.walks.data_plane import ANSWER_MS, Client
from tests.walks.three_nodes import Cluster


class Routed(Client):
    """As a `Client` of one node. A destination that is not there raises `LinkError`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.ids: dict[str, Uuid] = {}
        self._links: dict[int, Link] = {}

    @property
    def image(self) -> Any:
        """The cluster as the newest of its nodes knows it."""
        images = [node.control.metadata.image for node in self.cluster.nodes.values()]
        return max(images, key=lambda image: image.offset)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        found = self.image.topic(topic)
        return -1 if found is None else int(found.partitions[partition].leader)

    def coordinator(self, name: str) -> int:
        node = next(iter(self.cluster.nodes.values()))
        return self.leader_of(TRANSACTIONS_TOPIC, node.broker.transactions.home_of(name))

    def group_coordinator(self, group: str) -> int:
        node = next(iter(self.cluster.nodes.values()))
        return self.leader_of(OFFSETS_TOPIC, node.broker.groups.home_of(group))

    def _destination(self, message: Any) -> int:
        match message:
            case ProduceRequest():
                (topic,) = message.topic_data
                (data,) = topic.partition_data
                return self.leader_of(topic.name, data.index)
            case FetchRequest():
                (wanted,) = message.topics
                (partition,) = wanted.partitions
                return self.leader_of(wanted.topic, partition.partition)
            case TxnOffsetCommitRequest():
                return self.group_coordinator(message.group_id)
            case OffsetFetchRequest():
                (group,) = message.groups
                return self.group_coordinator(group.group_id)
        name = getattr(message, "transactional_id", None) or getattr(message, "v3_and_below_transactional_id", None)
        if name is None and getattr(message, "transactional_ids", None):
            (name,) = message.transactional_ids
        return next(iter(self.cluster.nodes)) if name is None else self.coordinator(name)

    def ask(self, message: Any, version: int | None = None) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.tell(self._destination(message), message, version))

    async def tell(self, node: int, message: Any, version: int | None = None) -> Any:
        """The reply of one node, whoever leads."""
        link = self._links.get(node)
        if link is None or not link.up:
            if node not in self.cluster.nodes:
                raise LinkError("127.0.0.1", self.cluster.ports.get(node, 0), "nobody is there")
            net = AsyncioNet(asyncio.get_running_loop())
            link = self._links[node] = await net.dial("127.0.0.1", self.cluster.ports[node], within(ANSWER_MS))
            await link.negotiate()
        key = message.__schema__.key
        return await link.request(message, link.newest(key) if version is None else version, within(ANSWER_MS))

    async def make(self, topic: str, *leaders: int, replicas: int = 3) -> None:
        """A topic whose partitions are led by these nodes; the rest of their replicas are the next ones."""
        made = CreateTopicsRequest
        nodes = sorted(self.cluster.roles)
        assignments = [
            made.CreatableReplicaAssignment(
                partition_index=index,
                broker_ids=[nodes[(nodes.index(leader) + step) % len(nodes)] for step in range(replicas)],
            )
            for index, leader in enumerate(leaders)
        ]
        wanted = made.CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1, assignments=assignments)
        reply = await self.tell(nodes[0], made(topics=[wanted], timeout_ms=within(ANSWER_MS)), 7)
        (result,) = reply.topics
        assert result.error_code == 0, result.error_message
        self.ids[topic] = Uuid(result.topic_id)
        await until(lambda: self.cluster.in_sync(topic, replicas))

    def close(self) -> None:
        for link in self._links.values():
            link.close()
