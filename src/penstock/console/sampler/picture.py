"""What was seen of a cluster: one frozen value. The next one shares every part that was not looked at anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from penstock.client.admin import (
    ClusterInfo,
    CommittedOffset,
    GroupInfo,
    GroupListing,
    LogDirInfo,
    QuorumInfo,
    Reassignment,
    TopicInfo,
)
from penstock.model.ids import TopicPartition
from penstock.operations.health import Reason

METADATA: Final = "metadata"
OFFSETS: Final = "offsets"
GROUPS: Final = "groups"
LOG_DIRS: Final = "log_dirs"
SETTINGS: Final = "settings"
HEALTH: Final = "health"
PARTS: Final = (METADATA, OFFSETS, GROUPS, LOG_DIRS, SETTINGS, HEALTH)


@dataclass(frozen=True, slots=True)
class KeptFor:
    """What a topic is set to keep: `retention_ms` -1 for ever, and whether it is compacted."""

    retention_ms: int | None
    compacted: bool
    min_isr: int


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
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]] = field(default_factory=dict)
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

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        """The groups that have positions in, or members for, each topic."""
        found: dict[str, set[str]] = {}
        for group, positions in self.committed.items():
            for item in positions:
                found.setdefault(item.topic, set()).add(group)
        for group, info in self.described.items():
            for member in info.members:
                for topic in member.assignment:
                    found.setdefault(topic, set()).add(group)
        return {topic: sorted(groups) for topic, groups in found.items()}

    def alive(self) -> set[int]:
        return {broker.id for broker in self.cluster.brokers if not broker.fenced}


def moving(move: Reassignment | None) -> dict[str, list[int]] | None:
    """A move under way: who comes and who goes."""
    if move is None:
        return None
    return {"adding": list(move.adding), "removing": list(move.removing)}
