"""What was seen of a cluster: one frozen value. The next one shares every part that was not looked at anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from penstock.client.admin import (
    ClusterInfo,
    GroupInfo,
    GroupListing,
    LogDirInfo,
    QuorumInfo,
    Reassignment,
    TopicInfo,
)
from penstock.console.sampler.lags import GroupLag, Standing
from penstock.model.ids import TopicPartition
from penstock.operations.health import Reason

METADATA: Final = "metadata"
GROUPS: Final = "groups"
OFFSETS: Final = "offsets"
STARTS: Final = "starts"
LOG_DIRS: Final = "log_dirs"
SETTINGS: Final = "settings"
HEALTH: Final = "health"
PARTS: Final = (METADATA, GROUPS, OFFSETS, STARTS, LOG_DIRS, SETTINGS, HEALTH)
"""In this order: a look at groups takes one at offsets along, because positions have to be asked for before ends."""


LOOKED_INTO: Final = ("", "classic", "consumer")
"""Types of groups that have positions as Kafka's consumers have them; old brokers do not tell the type."""


@dataclass(frozen=True, slots=True)
class KeptFor:
    """What a topic is set to keep: `retention_ms` -1 for ever, and whether it is compacted."""

    retention_ms: int | None
    compacted: bool
    min_isr: int


@dataclass(frozen=True, slots=True)
class TopicSums:
    """A topic in numbers; what is not known is None."""

    behind: int
    leaderless: int
    records: int | None
    bytes: int | None
    rate: float | None


DERIVED: Final = {
    "led_by": ("topics",),
    "sizes": ("log_dirs", "topics"),
    "readers": ("lags", "described"),
    "sums": ("topics", "starts", "ends", "rates", "log_dirs"),
    "loads": ("topics",),
}
"""What is derived from which parts, in the order in which they build on each other."""


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """Of how many partitions a broker is the leader, a replica, and a replica that is not in sync."""

    leaders: int = 0
    replicas: int = 0
    behind: int = 0


@dataclass(frozen=True)
class Picture:
    """A cluster as it was last seen; `at_ms` says when each part was, and `failed` why one was not."""

    cluster: ClusterInfo
    topics: Mapping[str, TopicInfo]
    quorum: QuorumInfo | None = None
    moves: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    rates: Mapping[TopicPartition, float] = field(default_factory=dict)
    log_dirs: Mapping[int, list[LogDirInfo]] = field(default_factory=dict)
    settings: Mapping[str, KeptFor] = field(default_factory=dict)
    groups: Mapping[str, GroupListing] = field(default_factory=dict)
    described: Mapping[str, GroupInfo] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, Standing]] = field(default_factory=dict)
    lags: Mapping[str, GroupLag] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Groups that could not be looked at, or not wholly, and why."""
    groups_until: str = ""
    """The last group of the last round: of very many some are looked at each time, and those behind it come next."""
    byte_rates: Mapping[str, float] = field(default_factory=dict)
    """Bytes a second that came to the leaders of each topic, as they are stored."""
    reasons: tuple[Reason, ...] = ()
    at_ms: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> dict[TopicPartition, int]:
        """Bytes of each partition, as its leader has it; of the largest replica where the leader's is not known."""
        found: dict[TopicPartition, int] = {}
        for dirs in self.log_dirs.values():
            for each in dirs:
                for replica in each.replicas:
                    item = TopicPartition(replica.topic, replica.partition)
                    if not replica.future:
                        found[item] = max(found.get(item, 0), replica.size_bytes)
        for node, dirs in self.log_dirs.items():
            led = self.led_by.get(node, frozenset())
            for each in dirs:
                for replica in each.replicas:
                    item = TopicPartition(replica.topic, replica.partition)
                    if item in led and not replica.future:
                        found[item] = replica.size_bytes
        return found

    @cached_property
    def led_by(self) -> dict[int, frozenset[TopicPartition]]:
        """The partitions that each broker leads."""
        led: dict[int, set[TopicPartition]] = {}
        for topic in self.topics.values():
            for partition in topic.partitions:
                if partition.leader >= 0:
                    led.setdefault(partition.leader, set()).add(TopicPartition(topic.name, partition.partition))
        return {node: frozenset(items) for node, items in led.items()}

    def led_alive(self) -> dict[int, frozenset[TopicPartition]]:
        """The partitions that each broker leads, of those that can be asked."""
        alive = self.alive()
        return {node: items for node, items in self.led_by.items() if node in alive}

    @cached_property
    def loads(self) -> dict[int, BrokerLoad]:
        """By broker, those that only replicas tell of too."""
        leaders: dict[int, int] = {}
        replicas: dict[int, int] = {}
        behind: dict[int, int] = {}
        for topic in self.topics.values():
            for partition in topic.partitions:
                leaders[partition.leader] = leaders.get(partition.leader, 0) + 1
                for node in partition.replicas:
                    replicas[node] = replicas.get(node, 0) + 1
                    behind[node] = behind.get(node, 0) + (node not in partition.isr)
        return {node: BrokerLoad(leaders.get(node, 0), count, behind[node]) for node, count in replicas.items()}

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        """The groups that have positions in, or members for, each topic."""
        found: dict[str, set[str]] = {}
        for group, lag in self.lags.items():
            for topic in lag.topics:
                found.setdefault(topic, set()).add(group)
        for group, info in self.described.items():
            for member in info.members:
                for topic in member.assignment:
                    found.setdefault(topic, set()).add(group)
        return {topic: sorted(groups) for topic, groups in found.items()}

    @cached_property
    def sums(self) -> dict[str, TopicSums]:
        """What a list says of each topic, whoever looks at it."""
        return {name: self._sums_of(topic) for name, topic in self.topics.items()}

    def _sums_of(self, topic: TopicInfo) -> TopicSums:
        items = [TopicPartition(topic.name, partition.partition) for partition in topic.partitions]
        starts, ends, sizes = self.starts, self.ends, self.sizes
        held = [ends[item] - starts[item] for item in items if item in ends and item in starts]
        known = [sizes[item] for item in items if item in sizes]
        rates = [self.rates[item] for item in items if item in self.rates]
        return TopicSums(
            behind=sum(len(partition.isr) < len(partition.replicas) for partition in topic.partitions),
            leaderless=sum(partition.leader < 0 for partition in topic.partitions),
            # A sum in which one partition is missing would be a wrong number, and so would one of a log that was cut
            # to nothing after its start was asked for.
            records=sum(held) if len(held) == len(items) and min(held, default=0) >= 0 else None,
            bytes=sum(known) if len(known) == len(items) else None,
            rate=sum(rates) if rates else None,
        )

    def carry(self, earlier: Picture) -> None:
        """Takes over what was derived from parts that are the same still, and derives the rest: no viewer waits."""
        for name, parts in DERIVED.items():
            if name in earlier.__dict__ and all(getattr(earlier, part) is getattr(self, part) for part in parts):
                self.__dict__[name] = earlier.__dict__[name]
            getattr(self, name)

    def alive(self) -> set[int]:
        return {broker.id for broker in self.cluster.brokers if not broker.fenced}


def moving(move: Reassignment | None) -> dict[str, list[int]] | None:
    """A move under way: who comes and who goes."""
    if move is None:
        return None
    return {"adding": list(move.adding), "removing": list(move.removing)}
