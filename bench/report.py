"""Writes a run down: JSON with every sample, a page with medians, spreads and ratios, a plot of the ratios."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.brokers import TITLES
from bench.plot import ratio_chart
from bench.series import Results, Series, readable

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Page:
    """What stands around the figures of a suite."""

    suite: str
    title: str
    command: str
    introduction: Sequence[str]
    machine: Mapping[str, str]
    parameters: Mapping[str, object]
    remarks: Sequence[str]
    titles: Mapping[str, str] = field(default_factory=lambda: TITLES)
    """Who was measured, in the order of the columns."""


def write(page: Page, results: Results, *, publish: bool) -> list[Path]:
    """Writes bench/results/<suite>.json; when the figures are to be kept, also the page and plot in docs/benchmarks."""
    results_dir = ROOT / "bench" / "results"
    results_dir.mkdir(parents=True, exist_ok=True)
    data = results_dir / f"{page.suite}.json"
    data.write_text(json.dumps(as_json(page, results), indent=2) + "\n")
    if not publish:
        return [data]
    docs = ROOT / "docs" / "benchmarks"
    docs.mkdir(parents=True, exist_ok=True)
    plot, text = docs / f"{page.suite}.svg", docs / f"{page.suite}.md"
    plot.write_text(
        ratio_chart(list(results.series.values()), f"Penstock beside {page.titles[results.rival]}: times better")
    )
    text.write_text(as_markdown(page, results, plot.name))
    return [data, text, plot]


def as_json(page: Page, results: Results) -> dict[str, object]:
    return {
        "suite": page.suite,
        "command": page.command,
        "machine": dict(page.machine),
        "parameters": dict(page.parameters),
        "remarks": list(page.remarks),
        "series": [series.to_json() for series in results.series.values()],
    }


def as_markdown(page: Page, results: Results, plot: str) -> str:
    lines = [f"# {page.title}", "", *page.introduction, ""]
    lines += [f"Made by `{page.command}` on this machine:", ""]
    lines += [f"- {name}: {value}" for name, value in page.machine.items()]
    lines += ["", "With: " + ", ".join(f"{name} {value}" for name, value in page.parameters.items()) + "."]
    lines += ["", *(f"> {remark}" for remark in page.remarks), f"![ratios]({plot})"]
    for group, series in results.groups().items():
        lines += [
            "",
            f"## {group[0].upper()}{group[1:]}",
            "",
            *table(series, page.titles, results.brokers(list(page.titles))),
        ]
    return "\n".join(lines) + "\n"


def table(series: Sequence[Series], titles: Mapping[str, str], brokers: Sequence[str]) -> list[str]:
    heads = ["figure", "unit", *(titles[broker] for broker in brokers), "ratio"]
    rows = ["| " + " | ".join(heads) + " |", "|---|---|" + "--:|" * (len(brokers) + 1)]
    for each in series:
        cells = [each.name, each.unit, *(cell(each, broker) for broker in brokers), ratio_text(each)]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def cell(series: Series, broker: str) -> str:
    middle, spread = series.median(broker), series.spread(broker)
    if middle is None or spread is None:
        return "–"
    if len(series.samples[broker]) == 1:
        return readable(middle)
    return f"{readable(middle)} ({readable(spread[0])}–{readable(spread[1])})"


def ratio_text(series: Series) -> str:
    ratio = series.ratio()
    return "–" if ratio is None else f"{ratio:.2f}×"


def terminal(results: Results, titles: Mapping[str, str] = TITLES) -> str:
    """The tables for a terminal, columns lined up."""
    brokers = results.brokers(list(titles))
    out: list[str] = []
    for group, series in results.groups().items():
        rows = [["figure", "unit", *(titles[broker] for broker in brokers), "ratio"]]
        rows += [
            [each.name, each.unit, *(cell(each, broker) for broker in brokers), ratio_text(each)] for each in series
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        out += ["", group.upper()]
        out += ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(out)
