"""What clients did and were promised, and whether the logs keep it.

The checks are those of Jepsen's workload for Kafka: no acknowledged record is lost or moved, nothing is there twice,
nothing that was never sent, every producer's records are in the order in which they were sent, nobody was shown a
record that is another one now, and in one generation of a group a partition has one reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
    """Whether what it was acknowledged must stay (acks=all) and may be there only once (idempotence)."""

    sent: int = 0
    acknowledged: dict[int, Place] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    def next_value(self) -> bytes:
        self.sent += 1
        return f"{self.name}:{self.sent}".encode()


class History:
    """All clients of a run."""

    def __init__(self) -> None:
        self.senders: dict[str, Sender] = {}
        self.shown: dict[Place, bytes] = {}
        self.read_to: dict[tuple[str, int], int] = {}
        """The last offset of each partition that any reader was shown."""

        self.violations: list[str] = []
        self._positions: dict[tuple[str, str, int], int] = {}
        self._owners: dict[tuple[int, str, int], str] = {}

    def sender(self, name: str, *, promised: bool) -> Sender:
        found = self.senders[name] = Sender(name, promised)
        return found

    def show(self, reader: str, place: Place, value: bytes) -> None:
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

    def owns_anew(self, reader: str, generation: int, topic: str, partition: int) -> None:
        """A partition was given to a reader: it goes on where its group had committed."""
        self._positions.pop((reader, topic, partition), None)
        owner = self._owners.setdefault((generation, topic, partition), reader)
        if owner != reader:
            self.violations.append(f"{topic}-{partition} is read by {owner} and {reader} in generation {generation}")

    def check(
        self, logs: Mapping[tuple[str, int], Sequence[tuple[int, bytes]]], starts: Mapping[tuple[str, int], int]
    ) -> list[str]:
        """What is wrong with the logs at the end, in words. `logs` has (offset, value) of every record.

        `starts` says where each of them begins: retention took what was before.
        """
        found = list(self.violations)
        by_place = {
            Place(topic, partition, offset): value
            for (topic, partition), rows in logs.items()
            for offset, value in rows
        }
        for sender in self.senders.values():
            if sender.promised:
                found += _lost(sender, by_place, starts)
        for (topic, partition), rows in sorted(logs.items()):
            found += self._check_log(f"{topic}-{partition}", [value for _, value in rows])
        changed = [
            place for place, value in self.shown.items() if _kept(place, starts) and by_place.get(place) != value
        ]
        found += [
            f"a reader was shown {self.shown[place]!r} at {_at(place)}, which is {by_place.get(place)!r} now"
            for place in changed[:EXAMPLES]
        ]
        return found

    def _check_log(self, name: str, values: list[bytes]) -> list[str]:
        found: list[str] = []
        last: dict[str, int] = {}
        for value in values:
            writer, _, number = value.decode().partition(":")
            sender = self.senders.get(writer)
            if sender is None or not 0 < int(number) <= sender.sent:
                found.append(f"{name} has {value!r}, which nobody sent")
            elif sender.promised:
                before = last.get(writer, 0)
                if int(number) <= before:
                    what = "twice" if int(number) == before else f"after {writer}:{before}"
                    found.append(f"{name} has {value!r} {what}")
                last[writer] = max(before, int(number))
        return found[:EXAMPLES]


def _kept(place: Place, starts: Mapping[tuple[str, int], int]) -> bool:
    return place.offset >= starts[place.topic, place.partition]


def _lost(sender: Sender, by_place: Mapping[Place, bytes], starts: Mapping[tuple[str, int], int]) -> list[str]:
    lost = [
        (number, place)
        for number, place in sender.acknowledged.items()
        if _kept(place, starts) and by_place.get(place) != f"{sender.name}:{number}".encode()
    ]
    words = [
        f"{sender.name}:{number} was acknowledged at {_at(place)}, where {by_place.get(place)!r} is"
        for number, place in lost[:EXAMPLES]
    ]
    return [*words, f"{len(lost)} acknowledged records of {sender.name} are lost"] if lost else []


def _at(place: Place) -> str:
    return f"{place.topic}-{place.partition}@{place.offset}"
