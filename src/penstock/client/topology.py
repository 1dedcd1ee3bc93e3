"""What metadata replies and hints add up to: brokers, topics, leaders. Pure; epochs never go back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.model.errors import (
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.metadata import MetadataResponse

_ABSENT = (UNKNOWN_TOPIC_OR_PARTITION.code, UNKNOWN_TOPIC_ID.code)


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as far as is known; `leader` is -1 while there is none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    racks: tuple[str | None, ...] = ()
    """Of the replicas, in their order."""


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic; partitions in order of their index."""

    name: str
    id: bytes
    internal: bool
    partitions: list[PartitionView] = field(default_factory=list)

    @property
    def led(self) -> bool:
        """Whether at least one partition has a leader."""
        return any(partition.leader >= 0 for partition in self.partitions)

    @property
    def leaders(self) -> list[int | None]:
        """Who leads each partition; None where nobody does."""
        return [partition.leader if partition.leader >= 0 else None for partition in self.partitions]


class Topology:
    """Brokers and topics. `generation` rises with every change."""

    __slots__ = ("addresses", "cluster_id", "controller", "generation", "names", "racks", "refusals", "stale", "topics")

    def __init__(self) -> None:
        self.addresses: dict[int, tuple[str, int]] = {}
        self.racks: dict[int, str | None] = {}
        self.topics: dict[str, TopicView] = {}
        self.names: dict[bytes, str] = {}
        self.refusals: dict[str, int] = {}
        """Topics that the last reply had only an error code for, unless they are just not there."""
        self.stale: set[str] = set()
        self.cluster_id: str | None = None
        self.controller = -1
        self.generation = 0

    def leader_of(self, topic: str, partition: int) -> int | None:
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        leader = found.partitions[partition].leader
        return leader if leader >= 0 else None

    def mark_stale(self, topic: str | None) -> None:
        self.stale.update(self.topics if topic is None else (topic,))

    def absorb(self, reply: MetadataResponse, *, of_all: bool = False) -> list[str]:
        """Takes a reply over; answers the topics that are known no more. One `of_all` topics names all there are."""
        # Hosts may be handed over to other brokers, so a reply replaces all of them.
        self.addresses = {broker.node_id: (broker.host, broker.port) for broker in reply.brokers}
        self.racks = {broker.node_id: broker.rack for broker in reply.brokers}
        self.cluster_id, self.controller = reply.cluster_id, reply.controller_id
        gone = []
        for topic in reply.topics:
            name = topic.name
            if name is None:
                continue
            self.stale.discard(name)
            if topic.error_code in (NONE.code, LEADER_NOT_AVAILABLE.code) and topic.partitions:
                self._put(name, topic)
                continue
            if topic.error_code not in _ABSENT:
                self.refusals[name] = topic.error_code
            else:
                # Also if it was not known: somebody may have followed it after it was gone.
                self.drop(name)
                gone.append(name)
        if of_all:
            gone += [name for name in self.topics.keys() - {topic.name for topic in reply.topics} if self.drop(name)]
        self.generation += 1
        return gone

    def learn(self, topic: str, partition: int, leader: int, epoch: int, endpoint: tuple[str, int] | None) -> bool:
        """A hint about one partition; True when it is newer than what is known."""
        found = self.topics.get(topic)
        if leader < 0 or found is None or not 0 <= partition < len(found.partitions):
            return False
        known = found.partitions[partition]
        if epoch <= known.leader_epoch or (endpoint is None and leader not in self.addresses):
            return False
        if endpoint is not None:
            self.addresses[leader] = endpoint
        partitions = list(found.partitions)
        partitions[partition] = replace(known, leader=leader, leader_epoch=epoch)
        self.topics[topic] = replace(found, partitions=partitions)
        self.generation += 1
        return True

    def _put(self, name: str, topic: MetadataResponse.MetadataResponseTopic) -> None:
        self.refusals.pop(name, None)
        known = self.topics.get(name)
        same = known is not None and known.id == topic.topic_id
        older = known.partitions if known is not None and same else []
        partitions = []
        for found in sorted(topic.partitions, key=lambda found: found.partition_index):
            if found.partition_index < len(older):
                before = older[found.partition_index]
                # A broker that lags behind still names the former leader.
                if found.leader_epoch < before.leader_epoch and found.leader_epoch >= 0:
                    partitions.append(before)
                    continue
            partitions.append(
                PartitionView(
                    found.partition_index,
                    found.leader_id,
                    found.leader_epoch,
                    tuple(found.replica_nodes),
                    tuple(found.isr_nodes),
                    tuple(self.racks.get(node) for node in found.replica_nodes),
                )
            )
        if known is not None and not same:
            self.names.pop(known.id, None)
        self.topics[name] = TopicView(name, topic.topic_id, topic.is_internal, partitions)
        if any(topic.topic_id):
            self.names[topic.topic_id] = name

    def drop(self, name: str) -> bool:
        """Nothing is kept of a topic that is gone; True when it was known."""
        self.stale.discard(name)
        self.refusals.pop(name, None)
        known = self.topics.pop(name, None)
        if known is None:
            return False
        self.names.pop(known.id, None)
        return True
