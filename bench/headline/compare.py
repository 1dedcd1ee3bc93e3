"""Two runs beside each other: what became slower. Pure: the JSON of two runs in, changes out.

A machine has moods, so a figure is never compared with itself but as a ratio to Kafka's of the same run; where a run
has no Kafka, to the null broker's; a figure that has neither is left out. Not even such ratios carry from one kind of
processor to another: there the earlier code is measured in the same run, and `beside` compares the two.

Eighty figures of three rounds each, and tails of latency that differ by half from round to round: some are always over
the tolerance by chance. So a figure that is over it is only suspected; it is measured again, and all its rounds count
together, until it is within the tolerance or chance is ruled out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from typing import Any

from bench.brokers import APACHE, EARLIER, NULL, PENSTOCK_NODE

TOLERANCE = 0.15
CHANCE_MAX = 0.01
"""How likely it may be that a figure looks slower by chance alone, for it to count as slower."""
ROUNDS_MIN = 7
"""With fewer rounds chance can never be ruled out that far (½⁷); then every single one has to be over the tolerance."""

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """Ratios of one figure in two runs: above 1 Penstock is ahead of its partner, whatever the figure."""

    figure: str
    partner: str
    before: float
    now: float
    rounds_before: tuple[float, ...]
    rounds_now: tuple[float, ...]
    part: str = ""
    """Which part of a run measures it."""

    @property
    def slowdown(self) -> float:
        """0.2 says that the ratio was 20 % better before; below zero it is better now."""
        return self.before / self.now - 1

    @property
    def suspected(self) -> bool:
        return self.slowdown > TOLERANCE

    @property
    def chance(self) -> float:
        """How likely so many rounds are worse than the worst round before if a worse one is as likely as a better."""
        worst = min(self.rounds_before)
        count, worse = len(self.rounds_now), sum(ratio < worst for ratio in self.rounds_now)
        return float(sum(comb(count, more) for more in range(worse, count + 1)) / 2**count)

    @property
    def enough(self) -> bool:
        """Whether there were rounds enough to rule chance out."""
        return len(self.rounds_now) >= ROUNDS_MIN

    @property
    def proven(self) -> bool:
        """Whether it is slower beyond the tolerance and beyond doubt."""
        if self.enough:
            return self.suspected and self.chance <= CHANCE_MAX
        return all(self.before / ratio - 1 > TOLERANCE for ratio in self.rounds_now)

    @property
    def rounds(self) -> str:
        """How many of the rounds were worse than the worst one before."""
        return f"{sum(ratio < min(self.rounds_before) for ratio in self.rounds_now)} of {len(self.rounds_now)} worse"


def changes(before: Run, now: Run) -> list[Change]:
    """One for each figure that both runs can set beside the same partner, the worst first."""
    old = {(each["group"], each["name"]): each for each in before["series"]}
    pairs = [(old[each["group"], each["name"]], each) for each in now["series"] if (each["group"], each["name"]) in old]
    found = [change for one, other in pairs if (change := _change(one, other)) is not None]
    return sorted(found, key=lambda change: -change.slowdown)


def beside(now: Run) -> list[Change]:
    """The same for a run in which the earlier code was measured too: it is 1, and its rounds are ours."""
    ratios = [(each, _ratio(each, each["medians"], EARLIER)) for each in now["series"]]
    found = [
        Change(_title(each), EARLIER, 1.0, ratio, (1.0,), _rounds(each, EARLIER, ratio), each.get("part", ""))
        for each, ratio in ratios
        if ratio
    ]
    return sorted(found, key=lambda change: -change.slowdown)


def same_processor(before: Run, now: Mapping[str, str]) -> bool:
    return bool(before["machine"].get("processor", now["processor"]) == now["processor"])


def suspected(found: Sequence[Change]) -> list[Change]:
    return [change for change in found if change.suspected]


def slower(found: Sequence[Change]) -> list[Change]:
    return [change for change in found if change.suspected and change.proven]


def pooled(run: Run, again: Run) -> dict[str, Any]:
    """The first run with the rounds of the second added to the figures that both have."""
    more = {(each["group"], each["name"]): each["samples"] for each in again["series"]}
    series = []
    for each in run["series"]:
        added = more.get((each["group"], each["name"]), {})
        samples = {broker: [*values, *added.get(broker, ())] for broker, values in each["samples"].items()}
        medians = {broker: median(values) for broker, values in samples.items() if values}
        series.append({**each, "samples": samples, "medians": medians})
    return {**run, "series": series}


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
    """All changes for a terminal, the worst first; what is over the tolerance has a mark, by chance or not."""
    rows = [("", "figure", "beside", "before", "now", "slower by", "rounds")]
    for change in found:
        mark = "!" if change.suspected and change.proven else "?" if change.suspected else ""
        ratios = (f"{change.before:.2f}×", f"{change.now:.2f}×")
        rows.append((mark, change.figure, change.partner, *ratios, f"{change.slowdown:+.0%}", change.rounds))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


def _change(before: Mapping[str, Any], now: Mapping[str, Any]) -> Change | None:
    for partner in (APACHE, NULL):
        ratios = [_ratio(each, each["medians"], partner) for each in (before, now)]
        if ratios[0] and ratios[1]:
            rounds = (_rounds(before, partner, ratios[0]), _rounds(now, partner, ratios[1]))
            return Change(_title(now), partner, ratios[0], ratios[1], *rounds, now.get("part", ""))
    return None


def _title(figure: Mapping[str, Any]) -> str:
    return f"{figure['group']}: {figure['name']}"


def _ratio(figure: Mapping[str, Any], values: Mapping[str, float | None], partner: str) -> float | None:
    ours, theirs = values.get(PENSTOCK_NODE), values.get(partner)
    if not ours or not theirs:
        return None
    return ours / theirs if figure["higher_is_better"] else theirs / ours


def _rounds(figure: Mapping[str, Any], partner: str, middle: float) -> tuple[float, ...]:
    """The ratio of each round, whose samples were taken next to each other."""
    samples = figure.get("samples", {})
    rounds = zip(samples.get(PENSTOCK_NODE, ()), samples.get(partner, ()), strict=False)
    ratios = [_ratio(figure, {PENSTOCK_NODE: ours, partner: theirs}, partner) for ours, theirs in rounds]
    return tuple(ratio for ratio in ratios if ratio) or (middle,)
