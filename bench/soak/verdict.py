"""The judge of a soak. Pure: looks and latencies in, windows and verdicts out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.soak.look import Look
from bench.soak.mix import GROUPS, QUERY_TOPIC, share_of_records
from penstock.bench.raw import percentile

WINDOW_S = 10.0
BLOCK_S = 300.0
"""Latency is compared by stretches of so long; of a short run, by thirds."""

STEADY_LEAST = 0.9
FLAT_MOST = 0.1
CALM_MOST = 2.0
STALE_MOST_S = 30.0

Latencies = Sequence[tuple[float, Sequence[float]]]
"""When a report came, and the milliseconds in it."""


@dataclass(frozen=True)
class Window:
    """Ten seconds: rates, means and the worst that was seen."""

    at_s: float
    """From the beginning of the load."""
    asked_per_s: float
    written_per_s: float
    read_per_s: float
    p50_ms: float
    p99_ms: float
    node_rss_mb: float
    clients_rss_mb: float
    spark_rss_mb: float
    node_cores: float
    clients_cores: float
    spark_cores: float
    group_lag_s: float
    """What the latest group had not read yet, as seconds of what is written for it."""
    query_lag_s: float
    query_batch_s: float
    loop_stalls: int
    files: int
    disk_mb: float


@dataclass(frozen=True)
class Verdict:
    claim: str
    passed: bool
    found: str


def windows(looks: Sequence[Look], latencies: Latencies, began_s: float) -> list[Window]:
    """Whole windows from `began_s` on; each lies between two looks."""
    found: list[Window] = []
    first = next((index for index, look in enumerate(looks) if look.at_s >= began_s), len(looks))
    while first < len(looks):
        until_s = looks[first].at_s + WINDOW_S - 0.5
        last = next((index for index in range(first + 1, len(looks)) if looks[index].at_s >= until_s), None)
        if last is None:
            break
        found.append(_window(looks[first : last + 1], latencies, began_s))
        first = last
    return found


def _window(looks: Sequence[Look], latencies: Latencies, began_s: float) -> Window:
    a, b = looks[0], looks[-1]
    seconds = b.at_s - a.at_s
    ms = within(latencies, a.at_s, b.at_s) or [0.0]
    written_per_s = max((b.written - a.written) / seconds, 1.0)
    rates = {group.name: written_per_s * share_of_records(group.topics) for group in GROUPS}
    query_rate = written_per_s * share_of_records([QUERY_TOPIC])
    return Window(
        at_s=round(b.at_s - began_s, 1),
        asked_per_s=round((b.asked - a.asked) / seconds),
        written_per_s=round((b.written - a.written) / seconds),
        read_per_s=round((b.read - a.read) / seconds),
        p50_ms=round(percentile(ms, 0.5), 2),
        p99_ms=round(percentile(ms, 0.99), 2),
        node_rss_mb=round(statistics.mean(look.node_rss_mb for look in looks), 1),
        clients_rss_mb=round(statistics.mean(look.clients_rss_mb for look in looks)),
        spark_rss_mb=round(statistics.mean(look.spark_rss_mb for look in looks)),
        node_cores=round((b.node_cpu_s - a.node_cpu_s) / seconds, 3),
        clients_cores=round((b.clients_cpu_s - a.clients_cpu_s) / seconds, 3),
        spark_cores=round((b.spark_cpu_s - a.spark_cpu_s) / seconds, 3),
        group_lag_s=round(max(max(look.group_lags[name] / rate for name, rate in rates.items()) for look in looks), 2),
        query_lag_s=round(max(look.query_lag for look in looks) / query_rate, 2),
        query_batch_s=max(look.query_batch_s for look in looks),
        loop_stalls=int(b.loop_stalls - a.loop_stalls),
        files=max(look.files for look in looks),
        disk_mb=round(b.disk_mb),
    )


def within(latencies: Latencies, from_s: float, to_s: float) -> list[float]:
    return [ms for at_s, some in latencies if from_s < at_s <= to_s for ms in some]


def verdicts(
    measured: Sequence[Window], blocks_p99_ms: Sequence[float], errors: Sequence[str], breaks: int
) -> list[Verdict]:
    """What the run is held to; windows of the warm-up are not among them."""
    return [steady(measured), flat(measured), clean(errors), calm(blocks_p99_ms), whole(breaks), fresh(measured)]


def steady(measured: Sequence[Window]) -> Verdict:
    shares = [window.written_per_s / window.asked_per_s if window.asked_per_s else 0.0 for window in measured]
    least = min(shares, default=0.0)
    return Verdict(
        f"throughput steady: no window of {WINDOW_S:.0f} s under {STEADY_LEAST:.0%} of what was asked",
        least >= STEADY_LEAST,
        f"the least was {least:.1%}",
    )


def flat(measured: Sequence[Window]) -> Verdict:
    sizes = [window.node_rss_mb for window in measured]
    middle = statistics.median(sizes) if sizes else 0.0
    off = max((abs(size - middle) / middle for size in sizes), default=1.0)
    ends = f"{min(sizes, default=0):.0f} to {max(sizes, default=0):.0f} MB, median {middle:.0f}"
    return Verdict(f"memory of the node flat: ± {FLAT_MOST:.0%}", off <= FLAT_MOST, ends)


def clean(errors: Sequence[str]) -> Verdict:
    return Verdict("no error of anybody", not errors, "none" if not errors else f"{len(errors)}: {errors[0]}")


def calm(blocks_p99_ms: Sequence[float]) -> Verdict:
    """Of each stretch the p99 of all its produces, so that one bad second is not a bad stretch."""
    first, later = blocks_p99_ms[0] if blocks_p99_ms else 0.0, blocks_p99_ms[1:]
    worst = max(later, default=first)
    return Verdict(
        f"p99 of produce within {CALM_MOST:.0f}× of the first stretch",
        bool(blocks_p99_ms) and worst <= CALM_MOST * first,
        f"{first:.2f} ms at first, {worst:.2f} ms at worst",
    )


def whole(breaks: int) -> Verdict:
    words = "none" if not breaks else f"{breaks} places where numbers do not follow"
    return Verdict("no record lost or doubled, by every writer's numbers", breaks == 0, words)


def fresh(measured: Sequence[Window]) -> Verdict:
    """Groups and the query keep up: what they are behind is worth at most so many seconds."""
    behind = [max(window.group_lag_s, window.query_lag_s) for window in measured]
    worst = max(behind, default=0.0)
    return Verdict(
        f"groups and query never more than {STALE_MOST_S:.0f} s behind",
        bool(behind) and worst <= STALE_MOST_S,
        f"{worst:.1f} s at worst",
    )


def blocks(latencies: Latencies, from_s: float, to_s: float) -> list[float]:
    """The p99 of each stretch; a rest that is too short belongs to the last one."""
    seconds = to_s - from_s
    count = int(seconds / BLOCK_S) if seconds >= 2 * BLOCK_S else 3
    length = BLOCK_S if seconds >= 2 * BLOCK_S else seconds / count
    found = []
    for index in range(count):
        end_s = to_s if index == count - 1 else from_s + (index + 1) * length
        ms = within(latencies, from_s + index * length, end_s)
        if ms:
            found.append(round(percentile(ms, 0.99), 2))
    return found
