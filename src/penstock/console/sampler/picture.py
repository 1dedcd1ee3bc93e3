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


DERIVED: Final = {
    "led_by": ("items",),
    "loads": ("topics",),
    "troubled": ("topics",),
    "sizes": ("log_dirs", "items"),
    "topic_sizes": ("log_dirs", "items"),
    "topic_rates": ("rates",),
    "records": ("items", "starts", "ends"),
    "readers": ("lags", "described"),
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
    items: Mapping[str, tuple[TopicPartition, ...]]
    """The partitions of each topic: one object for each, whichever part tells of it."""
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
        led_here: dict[TopicPartition, int] = {}
        nothing: tuple[TopicPartition, ...] = ()
        for node, dirs in self.log_dirs.items():
            led = self.led_by.get(node, frozenset())
            for each in dirs:
                for replica in each.replicas:
                    items, index = self.items.get(replica.topic, nothing), replica.partition
                    item = items[index] if index < len(items) else TopicPartition(replica.topic, index)
                    if replica.future:
                        continue
                    if item in led:
                        led_here[item] = replica.size_bytes
                    elif found.get(item, -1) < replica.size_bytes:
                        found[item] = replica.size_bytes
        return found | led_here

    @cached_property
    def topic_sizes(self) -> dict[str, int]:
        """Bytes of each topic of which all partitions are known."""
        return _summed(self.items, self.sizes)

    @cached_property
    def topic_rates(self) -> dict[str, float]:
        """Records a second that come to each topic."""
        found: dict[str, float] = {}
        for item, rate in self.rates.items():
            found[item.topic] = found.get(item.topic, 0.0) + rate
        return found

    @cached_property
    def records(self) -> dict[str, int]:
        """Records that each topic holds, of which all partitions are known."""
        starts = self.starts
        # A log that was cut to nothing after its start was asked for has no number.
        held = {item: end - starts[item] for item, end in self.ends.items() if starts.get(item, end + 1) <= end}
        return _summed(self.items, held)

    @cached_property
    def troubled(self) -> dict[str, tuple[int, int]]:
        """Of each topic that has any, how many partitions lack replicas and how many a leader."""
        found = {}
        for name, topic in self.topics.items():
            behind = leaderless = 0
            for partition in topic.partitions:
                behind += len(partition.isr) < len(partition.replicas)
                leaderless += partition.leader < 0
            if behind or leaderless:
                found[name] = (behind, leaderless)
        return found

    @cached_property
    def led_by(self) -> dict[int, frozenset[TopicPartition]]:
        """The partitions that each broker leads."""
        led: dict[int, list[TopicPartition]] = {}
        for name, topic in self.topics.items():
            for item, partition in zip(self.items[name], topic.partitions, strict=True):
                if partition.leader >= 0:
                    led.setdefault(partition.leader, []).append(item)
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

    def carry(self, earlier: Picture) -> None:
        """Takes over what was derived from parts that are the same still, and derives the rest: no viewer waits."""
        for name, parts in DERIVED.items():
            if name in earlier.__dict__ and all(getattr(earlier, part) is getattr(self, part) for part in parts):
                self.__dict__[name] = earlier.__dict__[name]
            getattr(self, name)
        if self.led_by is not earlier.led_by:
            # Who leads the same as before is asked the same question again, which is encoded already.
            self.__dict__["led_by"] = {
                node: before if (before := earlier.led_by.get(node)) == led else led
                for node, led in self.led_by.items()
            }

    def alive(self) -> set[int]:
        return {broker.id for broker in self.cluster.brokers if not broker.fenced}


def items_of(topics: Mapping[str, TopicInfo], earlier: Picture | None = None) -> dict[str, tuple[TopicPartition, ...]]:
    """The partitions of topics; those of a topic that is the same as before are the same objects."""
    known = earlier.items if earlier is not None else {}
    found = {}
    for name, topic in topics.items():
        before = known.get(name, ())
        if len(before) == len(topic.partitions) and all(
            item.partition == partition.partition for item, partition in zip(before, topic.partitions, strict=True)
        ):
            found[name] = before
        else:
            found[name] = tuple(TopicPartition(name, partition.partition) for partition in topic.partitions)
    return found


def _summed(items: Mapping[str, tuple[TopicPartition, ...]], numbers: Mapping[TopicPartition, int]) -> dict[str, int]:
    """By topic. A sum in which one partition is missing would be a wrong number."""
    found = {}
    for name, partitions in items.items():
        total = 0
        for item in partitions:
            number = numbers.get(item)
            if number is None:
                break
            total += number
        else:
            found[name] = total
    return found


def moving(move: Reassignment | None) -> dict[str, list[int]] | None:
    """A move under way: who comes and who goes."""
    if move is None:
        return None
    return {"adding": list(move.adding), "removing": list(move.removing)}
