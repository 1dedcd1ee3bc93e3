"""What a group and the partitions that it reads look like at one moment, and what is known besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.admin import OpenTransaction
    from penstock.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class ReadPartition:
    """Where a group is in one partition. `end` is the high watermark, `stable` the offset before which nothing is open.

    What could not be asked is -1, and `committed` is None where the group has no position.
    """

    committed: int | None
    start: int
    end: int
    stable: int
    member_id: str | None = None
    leader: int = 0
    """The broker that leads it, -1 for nobody."""
    in_sync: int = 1
    replicas: int = 1

    @property
    def lag(self) -> int:
        """Records between the position and the end; positions are asked for before ends, so never less than none."""
        if self.committed is None or self.end < 0:
            return 0
        return max(self.end - max(self.committed, self.start), 0)


@dataclass(frozen=True, slots=True)
class Reader:
    """A member as people look for it: its client's name and address, and how many partitions it has."""

    id: str
    client_id: str
    host: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.client_id or self.id} at {self.host.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class GroupSight:
    """A group at one moment. `epoch` is -1 in groups of the classic protocol, which do not tell it."""

    at_ms: int
    state: str
    epoch: int
    readers: Mapping[str, Reader]
    partitions: Mapping[TopicPartition, ReadPartition]

    @property
    def lag(self) -> int:
        return sum(each.lag for each in self.partitions.values())


@dataclass(frozen=True, slots=True)
class Unread:
    """The first record that a group has not read in a partition: it is where a group stands when it is stuck."""

    offset: int
    timestamp: int
    key: bytes | None
    size: int


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for a group at such a time, in records a second, from whoever has watched it for long."""

    incoming: float
    outgoing: float


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """All that is known of a group; `sights` are in the order of time, one at least."""

    group_id: str
    sights: Sequence[GroupSight]
    unread: Mapping[TopicPartition, Unread] = field(default_factory=dict)
    """Of the partitions with the largest lag; nobody looks at thousands."""
    retention_ms: Mapping[str, int] = field(default_factory=dict)
    """Of topics that lose records by age."""
    open: Sequence[OpenTransaction] = ()
    byte_rates: Mapping[str, float] = field(default_factory=dict)
    """Limits in bytes a second that are set for readers, by client id."""
    usual: Usual | None = None

    @property
    def first(self) -> GroupSight:
        return self.sights[0]

    @property
    def last(self) -> GroupSight:
        return self.sights[-1]

    @property
    def span_ms(self) -> int:
        return self.last.at_ms - self.first.at_ms

    def behind_ms(self, item: TopicPartition) -> int | None:
        """How old the first record is that was not read; 0 without lag, None where nobody has looked."""
        if not self.last.partitions[item].lag:
            return 0
        unread = self.unread.get(item)
        return None if unread is None or unread.timestamp < 0 else max(self.last.at_ms - unread.timestamp, 0)
