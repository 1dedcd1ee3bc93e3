"""What became of the partitions since the last batch: where each begins now, and what of them is gone. Pure.

Loss is what a reader was to get and cannot: a partition or topic deleted, a topic made anew under the same name, a log
that ends before where we were, a new partition whose first records are gone already. Whether that ends the query is the
user's choice (failOnDataLoss); what is read after it is the same either way.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.model.ids import TopicPartition
from penstock.spark.errors import GO_ON, DataLost, TopicLost
from penstock.spark.offsets import EARLIEST, LATEST, StreamOffset

_log = logging.getLogger("penstock.spark.source")


@dataclass(frozen=True, slots=True)
class Seen:
    """The cluster at one moment: ids of the topics that are read, the ends of their partitions, leader epochs."""

    ids: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)

    def without(self, partitions: Collection[TopicPartition]) -> Seen:
        """The same, had these partitions been gone: what goes between two questions is as good as gone before both."""
        if not partitions:
            return self
        return replace(self, ends={tp: end for tp, end in self.ends.items() if tp not in partitions})

    def short_of(self, places: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """The partitions that end before these places."""
        return {tp for tp, place in places.items() if place > self.ends.get(tp, place)}

    def reaching(self, places: Mapping[TopicPartition, int], high_watermarks: Mapping[TopicPartition, int]) -> Seen:
        """The same with ends no earlier than `places` where the logs themselves go on to there.

        An end that only counts what is committed may lie before a place that somebody named, or has read to when it
        read everything. That is a transaction to wait for, not a loss.
        """
        held = {tp: places[tp] for tp in self.short_of(places) if high_watermarks.get(tp, -1) >= places[tp]}
        return replace(self, ends={**self.ends, **held}) if held else self


@dataclass(frozen=True, slots=True)
class Standing:
    """Where every partition begins, and how that came."""

    begins: Mapping[TopicPartition, int]
    resolved: frozenset[TopicPartition]
    """Those that do not begin where the batch before ended: their begin must be written down."""
    losses: tuple[str, ...]
    gone: frozenset[TopicPartition]
    topic_lost: bool = False
    """Whether a whole topic is among the losses: gone, or made anew."""


def wanting_starts(start: StreamOffset, seen: Seen) -> set[TopicPartition]:
    """The partitions that begin at the start of their log, which has to be looked up."""
    replaced = _replaced(start, seen)
    return {
        tp
        for tp in seen.ends
        if tp not in start.ends or start.ends[tp] == EARLIEST or (tp.topic in replaced and start.ends[tp] >= 0)
    }


def stand(start: StreamOffset, seen: Seen, log_starts: Mapping[TopicPartition, int]) -> Standing:
    """Where a batch after `start` begins; `log_starts` has an answer for each of `wanting_starts`."""
    replaced = _replaced(start, seen)
    begins: dict[TopicPartition, int] = {}
    resolved: set[TopicPartition] = set()
    losses = [_replaced_words(topic, start, seen) for topic in sorted(replaced)]
    for tp, end in sorted(seen.ends.items()):
        wish = start.ends.get(tp)
        if tp in log_starts:
            begins[tp] = min(log_starts[tp], end)
            if wish is None and tp.topic not in replaced and log_starts[tp] > 0:
                losses.append(f"the new partition {tp} begins at {log_starts[tp]}, not 0: its first records are gone")
        elif wish is None or wish == LATEST:
            begins[tp] = end
        elif wish > end:
            begins[tp] = end
            losses.append(f"{tp} ends at {end}, but was to be read from {wish}: records were cut off")
        else:
            begins[tp] = wish
        if wish != begins[tp] or tp.topic in replaced:
            resolved.add(tp)
    gone = frozenset(start.ends.keys() - seen.ends.keys())
    losses += _gone_words(gone, seen)
    topic_lost = bool(replaced) or any(tp.topic not in seen.ids for tp in gone)
    return Standing(begins, frozenset(resolved), tuple(losses), gone, topic_lost)


def tell(losses: Iterable[str], *, fail: bool, topic_lost: bool = False) -> None:
    """Raises DataLost (TopicLost when a whole topic is), or warns when the user chose to go on."""
    found = list(losses)
    if not found:
        return
    words = "; ".join(found[:20]) + (f"; and {len(found) - 20} more" if len(found) > 20 else "")
    if fail:
        raise (TopicLost if topic_lost else DataLost)(f"{words}. {GO_ON}")
    _log.warning("data was lost, and failOnDataLoss is false: %s", words)


def _replaced(start: StreamOffset, seen: Seen) -> set[str]:
    return {topic for topic, now in seen.ids.items() if now and start.ids.get(topic, now) not in (now, "")}


def _replaced_words(topic: str, start: StreamOffset, seen: Seen) -> str:
    return (
        f"topic {topic!r} was deleted and created anew (its id was {start.ids[topic]}, now it is {seen.ids[topic]}): "
        "what had not been read of the old one is gone"
    )


def _gone_words(gone: Iterable[TopicPartition], seen: Seen) -> list[str]:
    """One sentence for a topic that is gone as a whole, one for each partition otherwise."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for tp in sorted(gone):
        by_topic.setdefault(tp.topic, []).append(tp)
    words = []
    for topic, partitions in by_topic.items():
        if topic in seen.ids:
            words += [f"partition {tp} is gone" for tp in partitions]
        else:
            words.append(f"topic {topic!r} is gone (deleted, or no longer matched)")
    return words
