"""Whether a batch may enter a table: a compare-and-set on offsets. Pure.

A table knows, for every partition of every topic it was fed from, the offset up to which it has the records. A batch
says where it begins and ends. Where the batch begins where the table stands, it enters; where all of it is there
already, it is a replay and nothing is to be done; anything else would double records or skip some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from penstock.spark.offsets import Range


class RangeKey(NamedTuple):
    """What a table keeps one offset for.

    `topic` is the topic's id, or its name where no id is known. `ordinal` is 0 but for queries that read one topic
    through several sources, each of which has its own position: the second has 1.
    """

    topic: str
    partition: int
    ordinal: int = 0


@dataclass(frozen=True, slots=True, order=True)
class TableRange(Range):
    """A range as a table's commit carries it."""

    ordinal: int = 0

    @property
    def key(self) -> RangeKey:
        return RangeKey(self.topic_id or self.topic, self.partition, self.ordinal)

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "topic": self.topic,
            "id": self.topic_id,
            "partition": self.partition,
            "from": self.start,
            "to": self.end,
            "epoch": self.epoch,
        }
        if self.ordinal:
            found["ordinal"] = self.ordinal
        return found

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> TableRange:
        return cls(
            topic=given["topic"],
            topic_id=given.get("id", ""),
            partition=int(given["partition"]),
            start=int(given["from"]),
            end=int(given["to"]),
            epoch=int(given.get("epoch", -1)),
            ordinal=int(given.get("ordinal", 0)),
        )


@dataclass(frozen=True, slots=True)
class Apply:
    """The table stands where the batch begins."""


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """All of the batch is in the table: it was played again."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The batch would double records or skip some; one sentence for every partition that does not fit."""

    reasons: tuple[str, ...]


Decision = Apply | AlreadyThere | Conflict


def decide(ranges: Sequence[TableRange], committed: Mapping[RangeKey, int]) -> Decision:
    """What to do with a batch of `ranges` where the table stands at `committed`; a partition it never saw may begin
    anywhere. A batch without ranges always applies: its caller has another key for it.
    """
    if all(_begins(given, committed) for given in ranges):
        return Apply()
    if all(given.end <= committed.get(given.key, -1) for given in ranges):
        return AlreadyThere()
    return Conflict(tuple(_reason(given, committed[given.key]) for given in ranges if not _begins(given, committed)))


def stretched(ranges: Sequence[TableRange], committed: Mapping[RangeKey, int]) -> tuple[TableRange, ...]:
    """Ranges that begin where a table stands if that is before them. Only for a table of many, of which an index says
    that nothing in between was for it."""
    return tuple(replace(each, start=min(each.start, committed.get(each.key, each.start))) for each in ranges)


def _begins(given: TableRange, committed: Mapping[RangeKey, int]) -> bool:
    stored = committed.get(given.key)
    return stored is None or stored == given.start


def _reason(given: TableRange, stored: int) -> str:
    where = f"{given.topic}-{given.partition}"
    if given.ordinal:
        where += f" (source {given.ordinal + 1} of that topic)"
    told = f"{where}: the table is at {stored}, the batch has [{given.start}, {given.end})"
    if given.start > stored:
        return f"{told}: a gap of {given.start - stored} offsets"
    if given.end <= stored:
        return f"{told}: all of it is there"
    return f"{told}: an overlap of {stored - given.start} offsets"
