"""What a run is asked to show, and whether it does. Pure: figures in, verdicts out.

A target bounds the quotient of Penstock's median and another's of the same run, or Penstock's median itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.brokers import APACHE, NULL, PENSTOCK_NODE
from bench.headline import cluster, disk, latency, produce, start, tools
from penstock.bench.series import Series, readable

PARTITIONS = 10_000
RECORDS_PER_S = 2_000_000


@dataclass(frozen=True)
class Target:
    group: str
    name: str
    limit: float
    at_least: bool = False
    against: str | None = APACHE

    @property
    def figure(self) -> str:
        """The name under which a reason for missing it is kept."""
        return f"{self.group}: {self.name}"


@dataclass(frozen=True)
class Verdict:
    """A target beside its figure. `value` is the quotient, or the median where there is nothing to divide by."""

    target: Target
    series: Series | None
    value: float | None

    @property
    def met(self) -> bool | None:
        """None when it was not measured."""
        if self.value is None:
            return None
        return self.value >= self.target.limit if self.target.at_least else self.value <= self.target.limit

    @property
    def word(self) -> str:
        return {True: "yes", False: "**no**", None: "not measured"}[self.met]

    @property
    def shown(self) -> str:
        """The figure in the page's convention: above 1 is ahead; a share of the bound; or the figure itself."""
        if self.value is None or self.series is None:
            return "–"
        if self.target.against == NULL:
            return f"{self.value:.0%} of the bound"
        if self.target.against is None:
            return f"{readable(self.value)} {self.series.unit}"
        return f"{self.value if self.target.at_least else 1 / self.value:.2f}×"

    @property
    def needed(self) -> str:
        """The target in the same convention."""
        limit = self.target.limit
        if self.target.against == NULL:
            return f"≥ {limit:.0%}"
        if self.target.against is None:
            return f"{'≥' if self.target.at_least else '≤'} {readable(limit)}"
        return f"≥ {limit if self.target.at_least else 1 / limit:.2f}×"

    @property
    def quotient(self) -> str:
        """What the target bounds, undivided by convention: Penstock ÷ the other."""
        if self.value is None or self.target.against is None:
            return "–"
        return f"{self.value:.2f} ({'≥' if self.target.at_least else '≤'} {self.target.limit:g})"


def all_targets() -> list[Target]:
    """In the order of the page."""
    found = [each for regime in produce.REGIMES for each in _broker_cpu(regime)]
    found.append(Target(disk.GROUP, "broker CPU", 0.8))
    found += [Target(tools.PRODUCER, shape.name, 0.9, at_least=True, against=NULL) for shape in tools.SENT]
    found += [Target(tools.CONSUMER, shape.name, 0.9, at_least=True, against=NULL) for shape in tools.READ]
    found += [
        Target(cluster.THROUGHPUT, cluster.ONE_CONNECTION, 1.5, at_least=True),
        Target(cluster.THROUGHPUT, cluster.EVERY_LEADER, 1.0, at_least=True),
        Target(cluster.THROUGHPUT, cluster.TOOL, 1.0, at_least=True),
        Target(latency.PRODUCE, "p99", 0.7),
        Target(latency.END_TO_END, "p99", 0.7),
        Target(start.START, start.FIRST_ACK, 0.1),
        Target(start.IDLE, "memory", 0.2),
        Target(
            produce.rate_group("unpinned"), "128 KB batches, 100 B records", RECORDS_PER_S, at_least=True, against=None
        ),
        Target(start.partitions_group(PARTITIONS), start.RESTART, 5.0, against=None),
    ]
    return found


def _broker_cpu(regime: str) -> list[Target]:
    limits = {case: 0.8 if case.batch_bytes == 128_000 else 1.0 for case in produce.CASES}
    limits |= {case: 0.6 for case in produce.CASES if case.codec != "none"}
    found = [Target(produce.cpu_group(regime), case.name, limit) for case, limit in limits.items()]
    return [*found, Target(produce.fetch_group(regime), f"broker CPU, {produce.FETCH}", 1.2)]


def judge(targets: list[Target], series: Mapping[tuple[str, str], Series]) -> list[Verdict]:
    return [_verdict(target, series.get((target.group, target.name))) for target in targets]


def _verdict(target: Target, series: Series | None) -> Verdict:
    ours = series.median(PENSTOCK_NODE) if series else None
    if series is None or ours is None or target.against is None:
        return Verdict(target, series, ours)
    other = series.median(target.against)
    return Verdict(target, series, ours / other if other else None)
