"""What a run found: figures by part, each with its readings by size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.scale.fit import Fit, Point, fit


@dataclass(frozen=True)
class Kind:
    """What is read: its unit, the unit of a slope with how many of it make one, and what two readings may differ by."""

    name: str
    unit: str
    slope_unit: str
    slope_scale: float
    noise: float


RSS = Kind("memory", "MB RSS", "KB", 1e3, 2.0)
IDLE_CPU = Kind("idle CPU", "% of a core", "µs a second", 1e4, 0.3)
START = Kind("start after a clean stop", "s", "µs", 1e6, 0.1)
RESTART = Kind("start after kill -9", "s", "µs", 1e6, 0.1)
P50 = Kind("produce latency, p50", "ms", "µs", 1e3, 0.15)
P99 = Kind("produce latency, p99", "ms", "µs", 1e3, 3.0)


def cpu_us(name: str, noise: float = 15.0) -> Kind:
    return Kind(name, "µs CPU", "ns", 1e3, noise)


def cpu_ms(name: str, noise: float = 0.5) -> Kind:
    return Kind(name, "ms CPU", "µs", 1e3, noise)


def took_ms(name: str, noise: float = 2.0) -> Kind:
    return Kind(name, "ms", "µs", 1e3, noise)


@dataclass
class Figure:
    """One kind of reading against the size of one thing."""

    part: str
    line: str
    """Which of the part's lines: partitions in large topics, or topics of one partition."""
    kind: Kind
    readings: dict[float, list[float]] = field(default_factory=dict)

    def points(self) -> list[Point]:
        return [(size, median(values)) for size, values in sorted(self.readings.items())]

    def fit(self) -> Fit:
        return fit(self.points(), self.kind.noise)

    def to_json(self) -> dict[str, Any]:
        found = self.fit()
        return {
            "part": self.part,
            "line": self.line,
            "kind": asdict(self.kind),
            "readings": [[size, values] for size, values in sorted(self.readings.items())],
            "slope": found.slope * self.kind.slope_scale,
            "verdict": found.verdict,
        }


class Findings:
    """All figures of a run, in the order in which they first came."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str, str], Figure] = {}

    def add(self, part: str, line: str, kind: Kind, size: float, value: float) -> None:
        figure = self._figures.setdefault((part, line, kind.name), Figure(part, line, kind))
        figure.readings.setdefault(size, []).append(value)

    def __iter__(self) -> Iterator[Figure]:
        return iter(self._figures.values())

    def parts(self) -> dict[str, list[Figure]]:
        grouped: dict[str, list[Figure]] = {}
        for figure in self:
            grouped.setdefault(figure.part, []).append(figure)
        return grouped

    def keep(self, data: list[dict[str, Any]]) -> None:
        """Takes over from an earlier run the parts that this one did not measure."""
        measured = {figure.part for figure in self}
        for each in data:
            if each["part"] not in measured:
                for size, values in each["readings"]:
                    for value in values:
                        self.add(each["part"], each["line"], Kind(**each["kind"]), size, value)
