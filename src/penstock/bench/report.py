"""Writes a run down: JSON with every sample, a page with medians, spreads and ratios, a plot of the ratios."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.plot import ratio_chart
from penstock.bench.series import Results, Series, readable


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
    titles: Mapping[str, str]
    """Who was measured, in the order of the columns."""


def write(page: Page, results: Results, *, data_dir: Path, page_dir: Path | None) -> list[Path]:
    """Writes <suite>.json into `data_dir`; where there is a `page_dir`, also the page and a plot of the ratios."""
    data_dir.mkdir(parents=True, exist_ok=True)
    data = data_dir / f"{page.suite}.json"
    data.write_text(json.dumps(as_json(page, results), indent=2) + "\n")
    return [data, *write_page(page, results, page_dir / f"{page.suite}.md")] if page_dir else [data]


def write_page(page: Page, results: Results, text: Path) -> list[Path]:
    """The page, and beside it a plot of the ratios when there are any."""
    text.parent.mkdir(parents=True, exist_ok=True)
    if not results.compares() or results.rival is None:
        text.write_text(as_markdown(page, results, None))
        return [text]
    plot = text.with_suffix(".svg")
    title = f"{page.titles[results.ours]} beside {page.titles[results.rival]}: times better"
    plot.write_text(ratio_chart(list(results.series.values()), title))
    text.write_text(as_markdown(page, results, plot.name))
    return [text, plot]


def as_json(page: Page, results: Results) -> dict[str, object]:
    return {
        "suite": page.suite,
        "command": page.command,
        "machine": dict(page.machine),
        "parameters": dict(page.parameters),
        "remarks": list(page.remarks),
        "series": [series.to_json() for series in results.series.values()],
    }


def as_markdown(page: Page, results: Results, plot: str | None) -> str:
    lines = [f"# {page.title}", "", *page.introduction, ""]
    lines += [f"Made by `{page.command}` on this machine:", ""]
    lines += [f"- {name}: {value}" for name, value in page.machine.items()]
    lines += ["", "With: " + ", ".join(f"{name} {value}" for name, value in page.parameters.items()) + "."]
    lines += ["", *(f"> {remark}" for remark in page.remarks)]
    if plot is not None:
        lines.append(f"![ratios]({plot})")
    for group, series in results.groups().items():
        lines += [
            "",
            f"## {group[0].upper()}{group[1:]}",
            "",
            *table(series, page.titles, results.brokers(list(page.titles))),
        ]
    return "\n".join(lines) + "\n"


def table(series: Sequence[Series], titles: Mapping[str, str], brokers: Sequence[str]) -> list[str]:
    heads, *rows = cells(series, titles, brokers)
    lines = ["| " + " | ".join(row) + " |" for row in (heads, *rows)]
    return [lines[0], "|---|---|" + "--:|" * (len(heads) - 2), *lines[1:]]


def cells(series: Sequence[Series], titles: Mapping[str, str], brokers: Sequence[str]) -> list[list[str]]:
    """The heads and the rows; ratios have a column when somebody is there to compare with."""
    compared = len(brokers) > 1
    rows = [["figure", "unit", *(titles[broker] for broker in brokers), *(["ratio"] if compared else [])]]
    for each in series:
        ratio = [ratio_text(each)] if compared else []
        rows.append([each.name, each.unit, *(cell(each, broker) for broker in brokers), *ratio])
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


def terminal(results: Results, titles: Mapping[str, str]) -> str:
    """The tables for a terminal, columns lined up."""
    brokers = results.brokers(list(titles))
    out: list[str] = []
    for group, series in results.groups().items():
        rows = cells(series, titles, brokers)
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        out += ["", group.upper()]
        out += ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(out)
