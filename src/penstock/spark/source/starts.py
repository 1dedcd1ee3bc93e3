"""Where reading begins or ends: the wishes that options express, and what they come to. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption, Missing
from penstock.spark.offsets import EARLIEST, LATEST

WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}
NO_OFFSET: Final = -1
"""What brokers answer when no record is as late as the time that was asked for."""

TABLE_PREFIX: Final = "table:"


@dataclass(frozen=True, slots=True)
class Place:
    """A wish for each partition: an offset, a time, where a table stands, or one of the ends of the log.

    What is nearest to the partition wins: its offset, its time, then what holds for all. `otherwise` is for partitions
    that nobody named.
    """

    option: str
    """The option that it was read from, for errors."""
    otherwise: int = LATEST
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    times_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    time_ms: int | None = None
    unmatched: int | None = LATEST
    """What a time stands for that no record is as late as; None is an error."""
    table: str = ""

    @property
    def named(self) -> set[TopicPartition]:
        return {*self.offsets, *self.times_ms}

    def times_for(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The times, in ms, whose offsets have to be looked up."""
        found = {}
        for tp in partitions:
            time_ms = self.times_ms.get(tp, self.time_ms)
            if time_ms is not None and tp not in self.offsets:
                found[tp] = time_ms
        return found

    def check_named(self, existing: Collection[TopicPartition]) -> None:
        """Raises for partitions that were named and are not read: a typing error would begin somewhere else."""
        unknown = sorted(self.named - set(existing))
        if unknown:
            raise BadOption(
                f"{self.option} names {_listed(unknown)}, which this query does not read; "
                f"it reads {_listed(sorted(existing)) or 'nothing'}. Partitions that are not named begin at the default"
            )

    def resolve(
        self,
        partitions: Iterable[TopicPartition],
        by_time: Mapping[TopicPartition, int],
        by_table: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """The offset of each partition, or a sentinel: EARLIEST and LATEST stay wishes here.

        `by_time` has what was looked up (NO_OFFSET where no record is that late), `by_table` where the table stands.
        """
        return {tp: self._resolved(tp, by_time, by_table) for tp in partitions}

    def _resolved(
        self, tp: TopicPartition, by_time: Mapping[TopicPartition, int], by_table: Mapping[TopicPartition, int]
    ) -> int:
        if tp in self.offsets:
            return self.offsets[tp]
        if tp in by_time:
            if by_time[tp] != NO_OFFSET:
                return by_time[tp]
            if self.unmatched is None:
                time_ms = self.times_ms.get(tp, self.time_ms)
                raise Missing(
                    f"{self.option}: {tp} has no record at or after {time_ms} ms; give an earlier time, or "
                    "startingOffsetsByTimestampStrategy=latest to begin there with what comes next"
                )
            return self.unmatched
        if self.table:
            return by_table.get(tp, self.otherwise)
        return self.otherwise


def by_word_or_json(option: str, given: str, *, otherwise: int) -> Place:
    """`earliest`, `latest`, `table:…` or offsets as JSON {"topic": {"0": 23, "1": -2}} (-1 latest, -2 earliest).

    JSON need not name every partition: the others begin (or end) at `otherwise`.
    """
    text = given.strip()
    if text.lower() in WORDS:
        return Place(option, otherwise=WORDS[text.lower()])
    if text.lower().startswith(TABLE_PREFIX):
        table = text[len(TABLE_PREFIX) :].strip()
        if not table:
            raise BadOption(f"{option}={given!r}: say which table, as in table:/lake/orders")
        # What a table has never heard of is not in it: such partitions are read from their first record.
        return Place(option, otherwise=EARLIEST, table=table)
    offsets = numbers_by_partition(option, text)
    for tp, offset in offsets.items():
        if offset < EARLIEST:
            raise BadOption(
                f"{option}: the offset of {tp} is {offset}; expected 0 or more, -1 (latest) or -2 (earliest)"
            )
    return Place(option, otherwise=otherwise, offsets=offsets)


def by_times(option: str, given: str, *, otherwise: int, unmatched: int | None) -> Place:
    """Times in ms as JSON {"topic": {"0": 1700000000000}}; partitions that are not named take `otherwise`."""
    times = numbers_by_partition(option, given.strip())
    for tp, time_ms in times.items():
        if time_ms < 0:
            raise BadOption(f"{option}: the time of {tp} is {time_ms}; expected milliseconds since 1970")
    return Place(option, otherwise=otherwise, times_ms=times, unmatched=unmatched)


def by_time(option: str, given: str, *, unmatched: int | None) -> Place:
    """One time in ms for all partitions."""
    text = given.strip()
    if not text.isdigit():
        raise BadOption(f"{option}={given!r}: expected milliseconds since 1970")
    return Place(option, time_ms=int(text), unmatched=unmatched)


def numbers_by_partition(option: str, text: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": 1}} as a mapping by partition; errors show what was expected."""
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, dict):
            raise _malformed(option, text)
        for partition, number in partitions.items():
            if not partition.isdigit() or isinstance(number, bool) or not isinstance(number, int):
                raise _malformed(option, text)
            found[TopicPartition(topic, int(partition))] = number
    return found


def partitions_by_topic(option: str, text: str) -> tuple[TopicPartition, ...]:
    """{"topic": [0, 1]} as partitions, sorted."""
    found: set[TopicPartition] = set()
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, list):
            raise _malformed(option, text, '{"topicA": [0, 1], "topicB": [2]}')
        for partition in partitions:
            if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
                raise _malformed(option, text, '{"topicA": [0, 1], "topicB": [2]}')
            found.add(TopicPartition(topic, partition))
    return tuple(sorted(found))


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _malformed(option, text)
    return found


def _malformed(option: str, text: str, example: str = '{"topicA": {"0": 23, "1": 345}}') -> BadOption:
    words = "" if option in ("assign",) or "Timestamp" in option else "earliest, latest or "
    return BadOption(f"{option}={text!r}: expected {words}JSON such as {example}")


def _listed(partitions: Iterable[TopicPartition], most: int = 10) -> str:
    names = [str(tp) for tp in partitions]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
