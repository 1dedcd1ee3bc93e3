"""Two runs beside each other: what became slower. Pure: the JSON of two runs in, changes out.

A machine has moods, so a figure is never compared with itself but as a ratio to Kafka's of the same run; where a run
has no Kafka, to the null broker's; a figure that has neither is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.brokers import APACHE, NULL, PENSTOCK_NODE

TOLERANCE = 0.15

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """Ratios of one figure in two runs: above 1 Penstock is ahead of its partner, whatever the figure."""

    figure: str
    partner: str
    before: float
    now: float
    spread_before: tuple[float, float]
    spread_now: tuple[float, float]

    @property
    def slowdown(self) -> float:
        """0.2 says that the ratio was 20 % better before; below zero it is better now."""
        return self.before / self.now - 1

    @property
    def apart(self) -> bool:
        """Whether every round of one run was better than every round of the other."""
        return self.spread_now[1] < self.spread_before[0] or self.spread_before[1] < self.spread_now[0]

    @property
    def rounds(self) -> str:
        """In a word. A run of one round has no spread, so two of them lie apart always, which says nothing."""
        if any(low == high for low, high in (self.spread_before, self.spread_now)):
            return "no spread"
        return "apart" if self.apart else "overlap"


def changes(before: Run, now: Run) -> list[Change]:
    """One for each figure that both runs can set beside the same partner, the worst first."""
    old = {(each["group"], each["name"]): each for each in before["series"]}
    pairs = [(old[each["group"], each["name"]], each) for each in now["series"] if (each["group"], each["name"]) in old]
    found = [change for one, other in pairs if (change := _change(one, other)) is not None]
    return sorted(found, key=lambda change: -change.slowdown)


def slower(found: Sequence[Change], tolerance: float = TOLERANCE) -> list[Change]:
    return [change for change in found if change.slowdown > tolerance]


def differences(before: Run, now: Run) -> list[str]:
    """What else is not the same in both runs, in sentences: a comparison is then to be read with care."""
    found = [
        f"{kind} {name}: {before.get(kind, {}).get(name, '–')} before, {now.get(kind, {}).get(name, '–')} now"
        for kind in ("machine", "parameters")
        for name in {**before.get(kind, {}), **now.get(kind, {})}
        if before.get(kind, {}).get(name) != now.get(kind, {}).get(name)
    ]
    missing = {(each["group"], each["name"]) for each in before["series"]} - {
        (each["group"], each["name"]) for each in now["series"]
    }
    return found + ([f"{len(missing)} figures of the run before were not measured now"] if missing else [])


def table(found: Sequence[Change]) -> str:
    """All changes for a terminal, the worst first; what is over the tolerance has a mark."""
    rows = [("", "figure", "beside", "before", "now", "slower by", "rounds")]
    for change in found:
        mark = "!" if change.slowdown > TOLERANCE else ""
        ratios = (f"{change.before:.2f}×", f"{change.now:.2f}×")
        rows.append((mark, change.figure, change.partner, *ratios, f"{change.slowdown:+.0%}", change.rounds))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


def _change(before: Mapping[str, Any], now: Mapping[str, Any]) -> Change | None:
    for partner in (APACHE, NULL):
        ratios = [_ratio(each, each["medians"], partner) for each in (before, now)]
        if ratios[0] and ratios[1]:
            spreads = (_spread(before, partner, ratios[0]), _spread(now, partner, ratios[1]))
            return Change(f"{now['group']}: {now['name']}", partner, ratios[0], ratios[1], *spreads)
    return None


def _ratio(figure: Mapping[str, Any], values: Mapping[str, float | None], partner: str) -> float | None:
    ours, theirs = values.get(PENSTOCK_NODE), values.get(partner)
    if not ours or not theirs:
        return None
    return ours / theirs if figure["higher_is_better"] else theirs / ours


def _spread(figure: Mapping[str, Any], partner: str, middle: float) -> tuple[float, float]:
    """The ratio of each round, whose samples were taken next to each other."""
    samples = figure.get("samples", {})
    rounds = zip(samples.get(PENSTOCK_NODE, ()), samples.get(partner, ()), strict=False)
    ratios = [_ratio(figure, {PENSTOCK_NODE: ours, partner: theirs}, partner) for ours, theirs in rounds]
    known = [ratio for ratio in ratios if ratio]
    return (min(known), max(known)) if known else (middle, middle)
