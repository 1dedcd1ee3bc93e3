"""docs/benchmarks/life.md: what a life was, how it ended, and the figures; written by a soak that is to be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import machine, places
from penstock.bench.plot import line_chart
from tests.life.settings import TIMES_FASTER
from tests.life.verdict import GROWTH_MAX, LATENCY_GROWTH_MAX, STRETCH, UNJUDGED, Growth, Points

CHARTS = {
    "life-memory": ("Memory", "MB RSS", "memory of ", ", MB"),
    "life-descriptors": ("Descriptors", "open", "descriptors of ", ""),
    "life-files": ("Files on disk", "files", "files of ", ""),
    "life-latency": ("Produce latency of the probe", "ms", "produce latency ", ", ms"),
}


@dataclass(frozen=True)
class Found:
    """All of a run."""

    minutes: float
    series: Mapping[str, Points]
    growths: Sequence[Growth]
    told: Sequence[Growth]
    """What is told and not judged."""
    counted: Mapping[str, int]
    wrong: Sequence[str]


def write(found: Found, folder: Path = places.DOCS) -> list[Path]:
    written = []
    for name, (title, y_label, beginning, ending) in CHARTS.items():
        lines = {
            series.removeprefix(beginning).removesuffix(ending): [(at / 60, value) for at, value in points]
            for series, points in found.series.items()
            if series.startswith(beginning) and not any(who in series for who in UNJUDGED)
        }
        path = folder / f"{name}.svg"
        path.write_text(line_chart(title, lines, x_label="minutes", y_label=y_label))
        written.append(path)
    page = folder / "life.md"
    page.write_text(as_markdown(found))
    return [page, *written]


WHAT = """\
Three nodes lived for {minutes:g} minutes with every period {times:,} times shorter than in life,
which makes {days:,.0f} days: segments end after nine seconds, records are kept for a minute, checkpoints are written
every second, metadata snapshots every five, offsets of empty groups are forgotten after a minute and idle
producers as soon as they have given up trying again. Topics and groups came and went, clients of four libraries
wrote and read, an agent followed a log that was rotated every three seconds, a pipeline brought its lines into a
table that was compacted every ten commits, and nodes were killed. In the end {ending}
"""
NOTHING_WRONG = "nothing was lost, doubled or out of order."
SOMETHING_WRONG = "**something was wrong**; see below."

HOW = """\
What was there is told as the median of all samples in a stretch of the run: one after the first quarter, one at
the end, {stretch:.0%} of the run each. At most {growth:.0%} more is allowed; less is no growth. *By chance* is how far
the medians of neighbouring stretches in between lay apart at most. Of a latency 2 % cannot be measured here, where
rounds of one benchmark lie 10 to 25 % apart: {latency:.0%} is allowed for the medians of p50 and p99.

Nodes 1 and 2 were killed before the life began and not again, so their memory is that of one process; node 3
was killed all the time. *Our clients* is one process with an Admin, a Producer and a Consumer that met every
topic, and hundreds that came for one.
"""


def as_markdown(found: Found) -> str:
    lines = [
        "# A year in an hour",
        "",
        WHAT.format(
            minutes=found.minutes,
            times=TIMES_FASTER,
            days=found.minutes * TIMES_FASTER / 60 / 24,
            ending=SOMETHING_WRONG if found.wrong else NOTHING_WRONG,
        ),
        "## What grew",
        "",
        "| what | after a quarter | at the end | grown | by chance | held |",
        "|---|--:|--:|--:|--:|---|",
        *(_row(each) for each in found.growths),
        "",
        HOW.format(stretch=STRETCH, growth=GROWTH_MAX, latency=LATENCY_GROWTH_MAX),
        *(_told(found.told) if found.told else []),
        *(line for name, (title, *_) in CHARTS.items() for line in (f"![{title}]({name}.svg)", "")),
        "## What happened",
        "",
        "| what | how often |",
        "|---|--:|",
        *(f"| {name} | {count:,} |" for name, count in found.counted.items()),
        "",
        f"Made by `make soak PART=life MINUTES={found.minutes:g} KEEP=1` on this machine:",
        "",
        *(f"- {name}: {value}" for name, value in machine.describe(["penstock"]).items()),
    ]
    if found.wrong:
        lines += ["", "## What was wrong", "", *(f"- `{words.splitlines()[0]}`" for words in found.wrong[:20])]
    return "\n".join(lines) + "\n"


def _row(each: Growth) -> str:
    held = "yes" if each.held else "**no**"
    return f"| {each.name} | {each.quarter:,.1f} | {each.end:,.1f} | {each.grown:+.1%} | ± {each.noise:.1%} | {held} |"


def _told(told: Sequence[Growth]) -> list[str]:
    words = [f"{each.name}: {each.quarter:,.0f}, then {each.end:,.0f} ({each.grown:+.1%})" for each in told]
    why = "because a JVM takes what it may, a table keeps its history for days, and others may use the machine"
    return [f"Told and not judged, {why}: " + "; ".join(words) + ".", ""]
