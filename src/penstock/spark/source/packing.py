"""Spans into tasks: about as many as there are cores, none of them much heavier than the others. Pure.

Spark's JVM connector makes one task of each partition. A task in Python costs some 50 ms of CPU before it reads the
first record, so a hundred small partitions would cost seconds. Here tasks take several spans, by weight in bytes; a
batch that is small is one task. Partitions are split only when the user asks for it (minPartitions,
maxRecordsPerPartition): unsplit, the records of a partition stay in order in one task.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition

BYTES_WORTH_A_TASK: Final = 4 << 20
"""Reading so much takes about as long as starting another task."""

RECORD_BYTES_UNKNOWN: Final = 192.0
"""What a record takes when brokers do not tell the sizes of their logs."""

ROW_BYTES: Final = 64.0
"""What a row costs beside its bytes, in bytes: the smallest records are not free, nor are those that compress well."""


@dataclass(frozen=True, slots=True)
class PackingLimits:
    """`tasks_max` holds unless the user asked for more with one of the other two."""

    tasks_max: int = 1
    tasks_min: int | None = None
    offsets_max: int | None = None
    """Of one task."""


@dataclass(slots=True, order=True)
class _Task:
    """Ordered by weight; the number makes the order the same each time."""

    weight: float
    number: int
    offsets: int = field(default=0, compare=False)
    spans: list[Span] = field(default_factory=list, compare=False)

    def fits(self, span: Span, offsets_max: int | None) -> bool:
        return offsets_max is None or not self.spans or self.offsets + span.end - span.start <= offsets_max

    def take(self, span: Span, weight: float) -> None:
        self.spans.append(span)
        self.weight += weight
        self.offsets += span.end - span.start


def pack(
    spans: Sequence[Span], limits: PackingLimits, bytes_per_offset: Mapping[TopicPartition, float]
) -> list[tuple[Span, ...]]:
    """The spans of each task. Every offset is in exactly one; empty spans are left out; equal input, equal answer."""
    filled = sorted((span for span in spans if span.end > span.start), key=_place)
    if not filled:
        return []
    rates = {span.tp: bytes_per_offset.get(span.tp, RECORD_BYTES_UNKNOWN) + ROW_BYTES for span in filled}
    count = _task_count(filled, limits, rates)
    if limits.tasks_min is not None or limits.offsets_max is not None:
        filled = _split(filled, count, limits, rates)
    tasks = _spread(filled, count, limits.offsets_max, rates)
    return [tuple(sorted(task.spans, key=_place)) for task in tasks if task.spans]


def _spread(
    spans: Sequence[Span], count: int, offsets_max: int | None, rates: Mapping[TopicPartition, float]
) -> list[_Task]:
    """The heaviest first, each into the lightest task: never worse than 4/3 of the best there is."""
    tasks = [_Task(0.0, number) for number in range(count)]
    lightest = list(tasks)
    for span in sorted(spans, key=lambda span: (-_weight(span, rates), _place(span))):
        if lightest[0].fits(span, offsets_max):
            task = heapq.heappop(lightest)
        else:
            task = _Task(0.0, len(tasks))
            tasks.append(task)
        task.take(span, _weight(span, rates))
        heapq.heappush(lightest, task)
    return tasks


def _task_count(spans: Sequence[Span], limits: PackingLimits, rates: Mapping[TopicPartition, float]) -> int:
    offsets = sum(span.end - span.start for span in spans)
    if limits.tasks_min is not None:
        count = min(limits.tasks_min, offsets)
    else:
        total = sum(_weight(span, rates) for span in spans)
        count = min(limits.tasks_max, math.ceil(total / BYTES_WORTH_A_TASK))
    if limits.offsets_max is not None:
        count = max(count, math.ceil(offsets / limits.offsets_max))
    return max(count, 1)


def _split(
    spans: Sequence[Span], count: int, limits: PackingLimits, rates: Mapping[TopicPartition, float]
) -> list[Span]:
    """Pieces that are light enough to be spread evenly over `count` tasks, and `count` of them at least."""
    share = sum(_weight(span, rates) for span in spans) / count
    pieces: list[Span] = []
    for span in spans:
        size = span.end - span.start
        parts = math.ceil(_weight(span, rates) / share - 1e-9) if limits.tasks_min is not None else 1
        if limits.offsets_max is not None:
            parts = max(parts, math.ceil(size / limits.offsets_max))
        pieces += _cut(span, min(max(parts, 1), size))
    while limits.tasks_min is not None and len(pieces) < count:
        # Heavy spans of few offsets yield less than their share of pieces: the longest give more.
        longest = max(range(len(pieces)), key=lambda at: pieces[at].end - pieces[at].start)
        pieces[longest : longest + 1] = _cut(pieces[longest], 2)
    return pieces


def _cut(span: Span, parts: int) -> list[Span]:
    size = span.end - span.start
    edges = [span.start + size * part // parts for part in range(parts + 1)]
    return [replace(span, start=start, end=end) for start, end in itertools.pairwise(edges)]


def _weight(span: Span, rates: Mapping[TopicPartition, float]) -> float:
    return (span.end - span.start) * rates[span.tp]


def _place(span: Span) -> tuple[str, int, int]:
    return span.topic, span.partition, span.start
