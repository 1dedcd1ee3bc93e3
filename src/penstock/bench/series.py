"""Figures: samples by contender, their medians and spreads, and the ratio that a reader looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Series:
    """One figure of one suite for every contender. `higher_is_better` says which way a ratio points.

    A ratio says how `ours` stands to `rival`; without a rival there is none.
    """

    group: str
    name: str
    unit: str
    higher_is_better: bool
    ours: str
    rival: str | None
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, broker: str, value: float) -> None:
        self.samples.setdefault(broker, []).append(value)

    def median(self, broker: str) -> float | None:
        values = self.samples.get(broker)
        return median(values) if values else None

    def spread(self, broker: str) -> tuple[float, float] | None:
        values = self.samples.get(broker)
        return (min(values), max(values)) if values else None

    def ratio(self) -> float | None:
        """How many times better ours is than its rival: above 1 is ahead, whatever the figure."""
        ours, theirs = self.median(self.ours), self.median(self.rival) if self.rival is not None else None
        if not ours or not theirs:
            return None
        return ours / theirs if self.higher_is_better else theirs / ours

    def to_json(self) -> dict[str, object]:
        return {
            "group": self.group,
            "name": self.name,
            "unit": self.unit,
            "higher_is_better": self.higher_is_better,
            "samples": self.samples,
            "medians": {broker: self.median(broker) for broker in self.samples},
            "ratio": self.ratio(),
        }


class Results:
    """All series of a run, in the order in which they first came. Ratios compare `ours` with `rival`."""

    def __init__(self, *, ours: str, rival: str | None) -> None:
        self.ours, self.rival = ours, rival
        self.series: dict[tuple[str, str], Series] = {}

    def add(
        self, group: str, name: str, unit: str, broker: str, value: float, *, higher_is_better: bool = True
    ) -> None:
        key = (group, name)
        if key not in self.series:
            self.series[key] = Series(group, name, unit, higher_is_better, self.ours, self.rival)
        self.series[key].add(broker, value)

    def groups(self) -> dict[str, list[Series]]:
        grouped: dict[str, list[Series]] = {}
        for series in self.series.values():
            grouped.setdefault(series.group, []).append(series)
        return grouped

    def brokers(self, order: Sequence[str]) -> list[str]:
        present = {broker for series in self.series.values() for broker in series.samples}
        return [broker for broker in order if broker in present]

    def compares(self) -> bool:
        """Whether any figure has a ratio."""
        return any(series.ratio() is not None for series in self.series.values())


def readable(value: float | None) -> str:
    """Three figures that mean something, with thousands set apart."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
