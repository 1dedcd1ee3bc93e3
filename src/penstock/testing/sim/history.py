"""What clients did and were promised, and whether the truth keeps it.

The checks are those of Jepsen's workload for Kafka: no acknowledged record is lost or moved, nothing is there twice,
nothing that was never sent, every producer's records are in the order in which they were sent, nobody was shown a
record that is another one now, and in one generation of a group a partition has one reader.

A replica that begins where its leader's log does knows of a producer what is in that log. When the last record of one
is gone by then, it is unknown there, and whatever it tries again is taken once more, here as in Apache Kafka: that is
no violation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from penstock.model.ids import PartitionKey

if TYPE_CHECKING:
    from penstock.model.ids import Uuid
    from penstock.testing.sim.truth import PartitionTruth, Truth

EXAMPLES = 3


class Place(NamedTuple):
    """A record's place."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Sender:
    """One producer: its records are numbered as they were sent."""

    name: str
    promised: bool
    """Whether what it was acknowledged must stay (acks=all)."""

    once: bool
    """Whether each of its records may be there only once, in order (idempotence)."""

    may_fail: bool = False
    sent: int = 0
    acknowledged: dict[int, Place] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    tombstones: set[int] = field(default_factory=set)

    def next_value(self) -> bytes:
        self.sent += 1
        return f"{self.name}:{self.sent}".encode()

    def value(self, number: int) -> bytes | None:
        return None if number in self.tombstones else f"{self.name}:{number}".encode()


class History:
    """All clients of a run."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.senders: dict[str, Sender] = {}
        self.shown: dict[Place, bytes | None] = {}
        self.read_to: dict[tuple[str, int], int] = {}
        """The last offset of each partition that any reader was shown."""

        self.shown_of: dict[tuple[PartitionKey, int], tuple[str, Place, bytes | None]] = {}
        """What readers were shown that knew the id of its topic."""

        self.violations: list[str] = []
        self._positions: dict[tuple[str, str, int], int] = {}
        self._owners: dict[tuple[int, str, int], str] = {}

    def sender(self, name: str, *, promised: bool, once: bool, may_fail: bool = False) -> Sender:
        found = self.senders[name] = Sender(name, promised, once, may_fail)
        return found

    def show(self, reader: str, place: Place, value: bytes | None) -> None:
        """A consumer was given a record."""
        known = self.shown.setdefault(place, value)
        if known != value:
            self.violations.append(f"{_at(place)} was {known!r} for one reader and {value!r} for {reader}")
        key = reader, place.topic, place.partition
        before = self._positions.get(key, -1)
        if place.offset <= before:
            self.violations.append(f"{reader} went back from {before} to {_at(place)} within one ownership")
        self._positions[key] = place.offset
        self.read_to[key[1:]] = max(place.offset, self.read_to.get(key[1:], -1))

    def show_of(self, reader: str, topic_id: Uuid, place: Place, value: bytes | None) -> None:
        """A consumer that knows an incarnation of a topic was given a record."""
        key = PartitionKey(topic_id, place.partition)
        known = self.shown_of.setdefault((key, place.offset), (reader, place, value))
        if known[2] != value:
            self.violations.append(f"{_at(place)} was {known[2]!r} for {known[0]} and {value!r} for {reader}")

    def _former(self) -> list[str]:
        """Records of a former topic that somebody was shown who knew the new one."""
        found = []
        for (key, offset), (reader, place, value) in self.shown_of.items():
            incarnation = self.truth.partitions.get(key)
            if incarnation is not None and incarnation.may_have_been(offset, value):
                continue
            known = None if incarnation is None else incarnation.records.get(offset)
            others = [each for each in self.truth.named(place.topic, place.partition) if each is not incarnation]
            if any((it := each.records.get(offset)) is not None and it.value == value for each in others):
                found.append(f"{reader} was shown {value!r} at {_at(place)}, of a former topic of that name")
            elif known is not None or not others:
                found.append(f"{reader} was shown {value!r} at {_at(place)}, which nobody has committed")
        return found[:EXAMPLES]

    def owns_anew(self, reader: str, generation: int, topic: str, partition: int) -> None:
        """A partition was given to a reader: it goes on where its group had committed."""
        self._positions.pop((reader, topic, partition), None)
        owner = self._owners.setdefault((generation, topic, partition), reader)
        if owner != reader:
            self.violations.append(f"{topic}-{partition} is read by {owner} and {reader} in generation {generation}")

    def check(self) -> list[str]:
        """What was promised and is not true, in words."""
        found = [*self.violations, *self._former()]
        for sender in self.senders.values():
            if sender.promised:
                found += self._untrue(sender)
        for partition in self.truth:
            if not partition.name.topic.startswith("__") and not self.truth.forgiven(partition.name.topic):
                found += self._disorders(partition)
        changed = [
            (place, value)
            for place, value in self.shown.items()
            if not self.truth.forgiven(place.topic) and not self._is_true(place, value)
        ]
        return found + [
            f"a reader was shown {value!r} at {_at(place)}, which is not so" for place, value in changed[:3]
        ]

    def _is_true(self, place: Place, value: bytes | None) -> bool:
        incarnations = self.truth.named(place.topic, place.partition)
        return any(each.may_have_been(place.offset, value) for each in incarnations)

    def _untrue(self, sender: Sender) -> list[str]:
        lost = [
            (number, place)
            for number, place in sender.acknowledged.items()
            if not self.truth.forgiven(place.topic) and not self._is_true(place, sender.value(number))
        ]
        words = [f"{sender.name}:{number} was acknowledged at {_at(place)}, where it is not" for number, place in lost]
        return [*words[:EXAMPLES], f"{len(lost)} acknowledged records of {sender.name} are lost"] if lost else []

    def _disorders(self, partition: PartitionTruth) -> list[str]:
        found: list[str] = []
        last: dict[str, tuple[int, int]] = {}  # number and offset
        for offset, known in sorted(partition.records.items()):
            if known.value is None:
                continue
            writer, _, text = known.value.decode().partition(":")
            number, sender = int(text), self.senders.get(writer)
            if sender is None or not 0 < number <= sender.sent:
                found.append(f"{partition.name} has {known.value!r}, which nobody sent")
            elif sender.once:
                before, at = last.get(writer, (0, -1))
                if number <= before and at >= known.began:
                    what = "twice" if number == before else f"after {writer}:{before}"
                    found.append(f"{partition.name} has {known.value!r} {what}")
                    number = before
                last[writer] = number, offset
        return found[:EXAMPLES]


def _at(place: Place) -> str:
    return f"{place.topic}-{place.partition}@{place.offset}"
