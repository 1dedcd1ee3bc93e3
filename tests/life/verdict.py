"""The judge of a life. Pure: samples in, growth and verdicts out.

What is compared are medians of two stretches, one after the first quarter and one at the end, each a tenth of the run.
A median does not care about the minority of samples that fell into a kill, a snapshot or a compaction, and both
stretches have many of each. Less than before is no growth. How far medians of one length lie apart by chance is told
beside every figure: it is the largest distance between the medians of neighbouring stretches in between.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

QUARTER, STRETCH = 0.25, 0.1
GROWTH_MAX = 0.02
LATENCY_GROWTH_MAX = 0.25
"""Rounds of one benchmark lie 10 to 25 % apart on machines like ours, so 2 % of a latency cannot be measured."""

UNJUDGED = ("JVM of the pipeline", "files of the lake", "load of the machine")
"""What is told and not judged: a JVM takes what it may, a table keeps its history for a day at least, and others may
use the machine."""

Points = Sequence[tuple[float, float]]
"""When, in seconds, and how much."""


@dataclass(frozen=True)
class Growth:
    """`quarter` and `end` are medians; `noise` and `grown` are shares."""

    name: str
    quarter: float
    end: float
    noise: float
    allowed: float

    @property
    def grown(self) -> float:
        return self.end / self.quarter - 1 if self.quarter else float(self.end > 0)

    @property
    def held(self) -> bool:
        return self.grown <= self.allowed


def growth(name: str, points: Points, seconds: float, allowed: float = GROWTH_MAX) -> Growth:
    """Of one series over a run of so many seconds."""
    length = STRETCH * seconds
    middles = [_middle(points, start, start + length) for start in _starts(QUARTER * seconds, seconds, length)]
    known = [middle for middle in middles if middle is not None]
    assert known, f"{name} has no samples after the first quarter"
    steps = [abs(b - a) / a for a, b in itertools.pairwise(known) if a]
    return Growth(name, known[0], known[-1], max(steps, default=0.0), allowed)


def _starts(first: float, end: float, length: float) -> list[float]:
    """Stretches side by side, counted from the end, so that the last one is whole; the first lies at the quarter."""
    count = int((end - first) / length)
    return [first, *(end - length * (count - number) for number in range(1, count))]


def _middle(points: Points, start: float, end: float) -> float | None:
    inside = [value for at, value in points if start <= at < end]
    return statistics.median(inside) if inside else None


def allowed_for(name: str) -> float:
    return LATENCY_GROWTH_MAX if "latency" in name else GROWTH_MAX


def growths(series: Mapping[str, Points], seconds: float) -> list[Growth]:
    return [growth(name, points, seconds, allowed_for(name)) for name, points in series.items()]


def grown_types(before: Mapping[str, int], after: Mapping[str, int], most: int = 12) -> list[str]:
    """Where to look for a leak: the types of which there are the most more than before."""
    more = {name: after[name] - before.get(name, 0) for name in after}
    ordered = sorted(more.items(), key=lambda item: -item[1])[:most]
    return [f"{name} {before.get(name, 0)} → {after[name]}" for name, by in ordered if by > 0]
