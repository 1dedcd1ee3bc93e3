"""What Spark's offset log holds for a stream of topics. Pure.

    {"orders": {"0": 120, "1": 80}, "@penstock": {"ids": {"orders": "…"}, "from": {"orders": {"0": 100}}, …}}

The part by topic is what Apache Spark's Kafka connector writes, so its tools read ours. What we need beside it hides
under a name no topic can have:

    ids        the topic's id, so that a topic that was deleted and made anew is not taken for the old one
    epochs     the leader epoch of the partition when its end was looked up
    from       where this batch begins, wherever that is not the end of the batch before: the first batch (whose start
               in the log is a sentinel), partitions that are new, topics made anew. Sinks learn their ranges from it
    bootstrap  who was asked, for those who read the log later: the lake sink and the listener
    query      the name that progress is published under, where the user gave another than the query's
    committed  true where only committed records are read: ends are the last stable offsets then
    quiet      true where the user does not want progress published

Sentinels: the first offset of a query is planned again when its first batch is played again, and must not have moved.
So the start is written as a wish (EARLIEST, LATEST) and resolved where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.model.ids import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
OURS: Final = "@penstock"

PartitionOffsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Offsets [start, end) of one partition. `epoch` is the leader's when `end` was looked up, -1 if unknown."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    epoch: int = -1

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def count(self) -> int:
        """How many offsets it spans; a compacted or trimmed log holds fewer records."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """One offset of a stream: how far every partition is."""

    ends: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    bootstrap: str = ""
    query: str = ""
    committed: bool = False
    quiet: bool = False

    def to_json(self) -> dict[str, Any]:
        """The shape that Spark writes down; keys are sorted, so that equal offsets are equal text."""
        found: dict[str, Any] = _by_topic(self.ends)
        ours: dict[str, Any] = {}
        if self.ids:
            ours["ids"] = dict(sorted(self.ids.items()))
        if self.epochs:
            ours["epochs"] = _by_topic(self.epochs)
        if self.starts:
            ours["from"] = _by_topic(self.starts)
        if self.bootstrap:
            ours["bootstrap"] = self.bootstrap
        if self.query:
            ours["query"] = self.query
        if self.committed:
            ours["committed"] = True
        if self.quiet:
            ours["quiet"] = True
        if ours:
            found[OURS] = ours
        return found

    @classmethod
    def of_json(cls, given: Mapping[str, Any] | str) -> StreamOffset:
        """Also reads what the JVM connector wrote, which has nothing under our name."""
        whole = json.loads(given) if isinstance(given, str) else given
        ours = whole.get(OURS, {})
        return cls(
            ends=_flat({topic: parts for topic, parts in whole.items() if topic != OURS}),
            ids=dict(ours.get("ids", {})),
            epochs=_flat(ours.get("epochs", {})),
            starts=_flat(ours.get("from", {})),
            bootstrap=ours.get("bootstrap", ""),
            query=ours.get("query", ""),
            committed=bool(ours.get("committed", False)),
            quiet=bool(ours.get("quiet", False)),
        )

    @staticmethod
    def is_ours(given: Any) -> bool:
        """Whether a line of an offset log was written by our source."""
        return isinstance(given, Mapping) and OURS in given

    def ranges_after(self, before: StreamOffset | None) -> Iterator[Range]:
        """What a batch that ends here has read, given where the batch before it ended; empty ranges are left out.

        A batch for which only time has passed ends at the very offset of the one before, begins of that included.
        """
        if self == before:
            return
        for tp, end in sorted(self.ends.items()):
            start = self.starts.get(tp)
            if start is None:
                start = before.ends.get(tp, LATEST) if before is not None else LATEST
            if 0 <= start < end:
                yield Range(tp.topic, self.ids.get(tp.topic, ""), tp.partition, start, end, self.epochs.get(tp, -1))


def _by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tp, offset in sorted(offsets.items()):
        found.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return found


def _flat(by_topic: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in by_topic.items()
        for partition, offset in partitions.items()
    }
