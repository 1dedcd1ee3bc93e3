"""What clients did and saw, and what is wrong with it: the anomalies that Jepsen's Kafka workload looks for.

A value is written once, by one producer, as its next number in that partition. So whatever a log holds can be traced to
a send, and everything here is decided from sends and reads alone, without a look at a broker.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

EXAMPLES_MAX = 5


class Outcome(Enum):
    """What became of a send, as far as its producer was told."""

    ACKED = "acked"
    REFUSED = "refused"
    """The broker said that it has not written it, and nobody tried again: nobody may ever read it."""
    UNKNOWN = "unknown"
    """A timeout, a broken link, or a refusal after the append: it may be there or not."""


class Send(NamedTuple):
    """One value on its way to a partition; `number` counts the sends of a producer to that partition."""

    producer: str
    partition: int
    number: int
    outcome: Outcome
    offset: int = -1

    @property
    def value(self) -> str:
        return value_of(self.producer, self.number)


class Read(NamedTuple):
    """One record as a consumer got it. Consumers start anew with each `assignment` (a rebalance, a seek)."""

    consumer: str
    assignment: int
    partition: int
    offset: int
    value: str


class Kind(Enum):
    """The classes of anomalies, in the words of Jepsen where it has one."""

    LOST_WRITE = "lost write"
    UNSEEN = "acknowledged but never read"
    DUPLICATE = "duplicate"
    INCONSISTENT_OFFSET = "inconsistent offset"
    NONMONOTONIC_SEND = "non-monotonic send"
    NONMONOTONIC_POLL = "non-monotonic poll"
    POLL_SKIP = "poll skip"
    ABORTED_READ = "aborted read"
    PHANTOM = "read but never sent"


class Anomaly(NamedTuple):
    kind: Kind
    partition: int
    words: str

    def __str__(self) -> str:
        return f"{self.kind.value} in partition {self.partition}: {self.words}"


def value_of(producer: str, number: int) -> str:
    return f"{producer}:{number}"


class History:
    """Everything that one workload did. `unordered` are producers that promise neither order nor uniqueness.

    A producer without idempotence that tries again may write twice; its records must still not be lost.
    """

    def __init__(self, unordered: Iterable[str] = ()) -> None:
        self.sends: list[Send] = []
        self.reads: list[Read] = []
        self.unordered = frozenset(unordered)

    def save(self, path: Path) -> None:
        """A line of JSON for each event, sends first."""
        with path.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"unordered": sorted(self.unordered)}) + "\n")
            for send in self.sends:
                file.write(json.dumps(["send", *send._replace(outcome=send.outcome.value)]) + "\n")  # type: ignore[arg-type]
            for read in self.reads:
                file.write(json.dumps(["read", *read]) + "\n")

    @classmethod
    def load(cls, path: Path) -> History:
        with path.open(encoding="utf-8") as file:
            history = cls(json.loads(file.readline())["unordered"])
            for line in file:
                kind, *fields = json.loads(line)
                if kind == "send":
                    producer, partition, number, outcome, offset = fields
                    history.sends.append(Send(producer, partition, number, Outcome(outcome), offset))
                else:
                    history.reads.append(Read(*fields))
        return history

    def check(self, *, all_read: bool = True) -> list[Anomaly]:
        """All anomalies, worst first. With `all_read` somebody has read everything, so what is unseen is lost."""
        return [*_Checker(self).anomalies(all_read)]

    def summary(self) -> str:
        acked = sum(send.outcome is Outcome.ACKED for send in self.sends)
        return f"{len(self.sends)} sends ({acked} acknowledged), {len(self.reads)} reads"


def report(anomalies: Iterable[Anomaly]) -> str:
    """A few of each kind, with their number."""
    by_kind: dict[Kind, list[Anomaly]] = defaultdict(list)
    for anomaly in anomalies:
        by_kind[anomaly.kind].append(anomaly)
    lines = []
    for kind, found in by_kind.items():
        lines.append(f"{kind.value}: {len(found)}")
        lines += [f"  partition {each.partition}: {each.words}" for each in found[:EXAMPLES_MAX]]
    return "\n".join(lines)


class _Checker:
    """The log of each partition as sends and reads together tell it, and questions to it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.sent = {(send.partition, send.value): send for send in history.sends}
        self.places: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.values: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.read: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for send in history.sends:
            if send.outcome is Outcome.ACKED:
                self._place(send.partition, send.offset, send.value)
        for read in history.reads:
            self._place(read.partition, read.offset, read.value)
            self.read[read.partition][read.value].add(read.offset)

    def _place(self, partition: int, offset: int, value: str) -> None:
        # Some clients are told no offset for a duplicate that the broker had already (-1): it was written, somewhere.
        if offset >= 0:
            self.places[partition][value].add(offset)
            self.values[partition][offset].add(value)

    def anomalies(self, all_read: bool) -> Iterator[Anomaly]:
        yield from self.lost(all_read)
        yield from self.duplicates()
        yield from self.inconsistent()
        yield from self.reordered()
        yield from self.polls()
        yield from self.unwritten()

    def lost(self, all_read: bool) -> Iterator[Anomaly]:
        """Acknowledged, and never read though something behind it was; or not read at all, when everything was."""
        furthest_read: dict[int, int] = defaultdict(lambda: -1)
        for read in self.history.reads:
            furthest_read[read.partition] = max(furthest_read[read.partition], read.offset)
        for send in self.history.sends:
            if send.outcome is not Outcome.ACKED or send.value in self.read[send.partition]:
                continue
            furthest = furthest_read[send.partition]
            words = f"{send.value} was acknowledged at offset {send.offset}"
            if 0 <= send.offset < furthest:
                yield Anomaly(Kind.LOST_WRITE, send.partition, f"{words}; others read up to {furthest}, never this")
            elif all_read:
                yield Anomaly(Kind.UNSEEN, send.partition, f"{words}; nobody has read it")

    def duplicates(self) -> Iterator[Anomaly]:
        for partition, places in self.read.items():
            for value, offsets in places.items():
                send = self.sent.get((partition, value))
                if len(offsets) > 1 and (send is None or send.producer not in self.history.unordered):
                    yield Anomaly(Kind.DUPLICATE, partition, f"{value} is at offsets {sorted(offsets)}")

    def inconsistent(self) -> Iterator[Anomaly]:
        """One offset with two values, whoever said so: two readers, or a reader and an acknowledgement."""
        for partition, values in self.values.items():
            for offset, found in values.items():
                if len(found) > 1:
                    yield Anomaly(Kind.INCONSISTENT_OFFSET, partition, f"offset {offset} has {sorted(found)}")
        # An idempotent producer's value that was acknowledged at one offset and read at another lies there alone.
        for (partition, value), send in self.sent.items():
            read_at = self.read[partition].get(value, set())
            if (
                send.outcome is Outcome.ACKED
                and send.offset >= 0
                and len(read_at) == 1
                and send.offset not in read_at
                and send.producer not in self.history.unordered
            ):
                words = f"{value} was acknowledged at {send.offset} and read at {min(read_at)}"
                yield Anomaly(Kind.INCONSISTENT_OFFSET, partition, words)

    def reordered(self) -> Iterator[Anomaly]:
        """A producer's numbers must rise along the log."""
        for partition, values in self.values.items():
            last: dict[str, tuple[int, int]] = {}
            for offset in sorted(values):
                for value in sorted(values[offset]):
                    send = self.sent.get((partition, value))
                    if send is None or send.producer in self.history.unordered:
                        continue
                    number, at = last.get(send.producer, (-1, -1))
                    # The same number again is a duplicate, which has a name of its own.
                    if send.number < number:
                        words = f"{value} is at offset {offset}, behind {value_of(send.producer, number)} at {at}"
                        yield Anomaly(Kind.NONMONOTONIC_SEND, partition, words)
                    else:
                        last[send.producer] = (send.number, offset)

    def polls(self) -> Iterator[Anomaly]:
        """Within an assignment offsets rise one by one, over no offset that has a value."""
        last: dict[tuple[str, int, int], int] = {}
        for read in self.history.reads:
            key = (read.consumer, read.assignment, read.partition)
            before = last.get(key)
            last[key] = read.offset
            if before is None:
                continue
            if read.offset <= before:
                words = f"{read.consumer} got offset {read.offset} after {before}"
                yield Anomaly(Kind.NONMONOTONIC_POLL, read.partition, words)
                continue
            known = self.values[read.partition]
            skipped = [offset for offset in range(before + 1, read.offset) if offset in known]
            if skipped:
                words = f"{read.consumer} got {read.offset} after {before}; others know of {skipped[:EXAMPLES_MAX]}"
                yield Anomaly(Kind.POLL_SKIP, read.partition, words)

    def unwritten(self) -> Iterator[Anomaly]:
        for partition, places in self.read.items():
            for value, offsets in places.items():
                send = self.sent.get((partition, value))
                at = f"{value} was read at offset {min(offsets)}"
                if send is None:
                    yield Anomaly(Kind.PHANTOM, partition, f"{at}; nobody sent it there")
                elif send.outcome is Outcome.REFUSED:
                    yield Anomaly(Kind.ABORTED_READ, partition, f"{at}, but its producer was told that it was refused")
