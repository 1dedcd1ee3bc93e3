"""How fast it was: from the writer's count, the rows and the commits they came with. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from penstock.demo.evidence import Landing, Speed


def freshness_s(rows: Iterable[tuple[int, int, int]], landings: Sequence[Landing]) -> list[float]:
    """Of each row (partition, offset, when its line was written in ms): until the commit that brought it."""
    of_partition: dict[int, tuple[list[int], list[int]]] = {}
    for landing in landings:
        for partition, start, _ in landing.ranges:
            starts, times = of_partition.setdefault(partition, ([], []))
            starts.append(start)
            times.append(landing.time_ms)
    return list(_waited(rows, of_partition))


def _waited(
    rows: Iterable[tuple[int, int, int]], of_partition: dict[int, tuple[list[int], list[int]]]
) -> Iterator[float]:
    for partition, offset, written_ms in rows:
        starts, times = of_partition[partition]
        yield (times[bisect_right(starts, offset) - 1] - written_ms) / 1000


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all are not above; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def peak_rows_per_s(landings: Sequence[Landing], begun_ms: int) -> float:
    """The most that the table took between two commits, or from the first line that was written to the first commit."""
    times = pairwise([begun_ms, *(landing.time_ms for landing in landings)])
    rates = (
        landing.rows * 1000 / max(1, after - before) for landing, (before, after) in zip(landings, times, strict=True)
    )
    return max(rates, default=0.0)


def speed(
    *, lines: int, size_bytes: int, seconds: float, rows: Iterable[tuple[int, int, int]], landings: Sequence[Landing]
) -> Speed:
    of_rows = list(rows)
    fresh = freshness_s(of_rows, landings)
    begun_ms = min((written_ms for _, _, written_ms in of_rows), default=0)
    return Speed(
        seconds=seconds,
        lines_per_s=lines / max(seconds, 0.001),
        bytes_per_s=size_bytes / max(seconds, 0.001),
        peak_rows_per_s=peak_rows_per_s(landings, begun_ms),
        fresh_p50_s=percentile(fresh, 0.5),
        fresh_p99_s=percentile(fresh, 0.99),
        commits=len(landings),
    )
