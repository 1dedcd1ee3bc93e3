"""Every record that was ever committed, whatever became of it; and what retention and compaction may take of that.

A record becomes true when the first replica calls it committed. From then on it is the same on every replica, and it
stays, unless the log begins after it or compaction may have taken it:

- A log may begin later because somebody asked for it (DeleteRecords), because all that goes is older than
  `retention.ms` by the clock of the replica that deletes, because what stays is at least `retention.bytes`, or because
  another replica has begun there rightfully.
- Compaction takes a record of a key that has a later one, and a tombstone whose time is over. What was aborted it may
  take at once, and that is no later one for anything.

What is committed and taken within one instant, or goes with its topic, nobody could look at: of those offsets anything
may be told.

A topic that is made anew has another id, and with it a truth of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.testing.sim.topics import KEYED

if TYPE_CHECKING:
    from penstock.kernels import Record
    from penstock.model.config import TopicSettings
    from penstock.model.ids import PartitionKey, TopicPartition

COMPACTED_TOPICS = frozenset((KEYED, OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
ALL = -1
EXAMPLES = 3


class Known(NamedTuple):
    """A committed record."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    at_s: float
    """When it was first seen to be committed."""

    began: int
    """Where the log of some replica began by then: what lies before may be unknown to whoever leads."""


class Deletions:
    """What DeleteRecords may have taken of the partitions of one name. It asks by name, whichever incarnation hears."""

    def __init__(self) -> None:
        self.below = 0
        self.of_everything = 0  # that nobody has an answer to: whatever is committed may go


class PartitionTruth:
    """One partition of one incarnation of a topic."""

    def __init__(self, name: TopicPartition, deletions: Deletions) -> None:
        self.name, self._deletions = name, deletions
        self.records: dict[int, Known] = {}
        self.end = 0
        self.start = 0
        """Where some replica's log rightfully begins."""

        self.unseen: list[range] = []
        """Offsets that were committed and gone before anybody looked."""

        self.newest: dict[bytes, int] = {}
        """The last offset of every key."""

        self.void: set[int] = set()
        """Offsets whose transaction was aborted; only a world with transactions tells."""

    @property
    def compacted(self) -> bool:
        return self.name.topic in COMPACTED_TOPICS

    def learn(self, records: Iterable[Record], end: int, at_s: float) -> None:
        for record in records:
            known = Known(record.key, record.value, record.timestamp, at_s, self.start)
            self.records.setdefault(record.offset, known)
            if record.key is not None and record.offset > self.newest.get(record.key, -1):
                self.newest[record.key] = record.offset
        self.end = max(self.end, end)

    def objection(self, start: int, settings: TopicSettings, size_bytes: int, now_ms: int) -> str | None:
        """Why a log may not begin at `start`; None when it may, and then every other may too."""
        if start <= self.start:
            return None
        by_order = start <= self._deletions.below or self._deletions.of_everything
        if not by_order and not self._expired(start, settings, size_bytes, now_ms):
            return (
                f"{self.name} begins at {start}: nobody asked for it, {size_bytes} bytes are left of "
                f"{settings.retention_bytes}, and the youngest record before is "
                f"{now_ms - self._youngest(start)} ms old of {settings.retention_ms}"
            )
        if start > self.end:
            self.unseen.append(range(self.end, start))
            self.end = start
        self.start = start
        return None

    def went(self, written: int) -> None:
        """A leader's log is gone, with its topic: what it committed in that instant nobody can look up any more."""
        if written > self.end:
            self.unseen.append(range(self.end, written))

    def may_have_been(self, offset: int, value: bytes | None) -> bool:
        """Whether a record with this value was committed here, as far as anybody can know."""
        known = self.records.get(offset)
        return known.value == value if known is not None else any(offset in unseen for unseen in self.unseen)

    def _expired(self, start: int, settings: TopicSettings, size_bytes: int, now_ms: int) -> bool:
        if not settings.deletes:
            return False
        if settings.retention_bytes >= 0 and size_bytes >= settings.retention_bytes:
            return True
        return settings.retention_ms >= 0 and now_ms - self._youngest(start) > settings.retention_ms

    def _youngest(self, start: int) -> int:
        gone = [self.records[offset].timestamp for offset in range(self.start, start) if offset in self.records]
        return max(gone, default=0)

    def missing(self, there: dict[int, Record], start: int, end: int, tombstones_gone_by_s: float) -> list[str]:
        """What a replica that has [start, end) should have and has not, or has otherwise."""
        found = []
        if self.void and self.compacted:
            self.newest = {
                known.key: offset
                for offset, known in sorted(self.records.items())
                if known.key is not None and offset not in self.void
            }
        for offset in [offset for offset in self.records if start <= offset < end]:
            known, record = self.records[offset], there.get(offset)
            if record is None:
                if not (self.compacted and self._superseded(offset, known, tombstones_gone_by_s)):
                    found.append(f"{self.name}@{offset} was {_words(known)} and is lost")
            elif (record.key, record.value) != (known.key, known.value):
                found.append(f"{self.name}@{offset} was {_words(known)} and is {record.value!r}")
        return found[:EXAMPLES]

    def _superseded(self, offset: int, known: Known, tombstones_gone_by_s: float) -> bool:
        if offset in self.void or (known.key is not None and self.newest[known.key] > offset):
            return True
        return known.value is None and known.at_s <= tombstones_gone_by_s


class Truth:
    """All partitions of all incarnations of all topics."""

    def __init__(self) -> None:
        self.partitions: dict[PartitionKey, PartitionTruth] = {}
        self._by_name: dict[tuple[str, int], list[PartitionTruth]] = {}
        self._deletions: dict[tuple[str, int], Deletions] = {}
        self._forgiven: set[str] = set()

    def of(self, key: PartitionKey, name: TopicPartition) -> PartitionTruth:
        found = self.partitions.get(key)
        if found is None:
            found = self.partitions[key] = PartitionTruth(name, self._deletions_of(name.topic, name.partition))
            self._by_name.setdefault((name.topic, name.partition), []).append(found)
        return found

    def named(self, topic: str, partition: int) -> list[PartitionTruth]:
        """All incarnations, the oldest first."""
        return self._by_name.get((topic, partition), [])

    def newest(self, topic: str, partition: int) -> PartitionTruth | None:
        return next(reversed(self.named(topic, partition)), None)

    def __iter__(self) -> Iterator[PartitionTruth]:
        return iter(self.partitions.values())

    # -- what administrators allow

    def allow_deletion(self, topic: str, partition: int, offset: int) -> Callable[[], None]:
        """Records may be deleted from now on; call what is given back when it is known that this is over."""
        deletions = self._deletions_of(topic, partition)
        if offset != ALL:
            deletions.below = max(deletions.below, offset)
            return lambda: None
        deletions.of_everything += 1

        def over() -> None:
            deletions.of_everything -= 1
            deletions.below = max([deletions.below, *(each.end for each in self.named(topic, partition))])

        return over

    def _deletions_of(self, topic: str, partition: int) -> Deletions:
        return self._deletions.setdefault((topic, partition), Deletions())

    def forgive(self, topic: str) -> None:
        """Somebody allowed that committed records of this topic are lost."""
        self._forgiven.add(topic)

    def forgiven(self, topic: str) -> bool:
        return topic in self._forgiven


def _words(known: Known) -> str:
    return f"{known.value!r} of key {known.key!r}"
