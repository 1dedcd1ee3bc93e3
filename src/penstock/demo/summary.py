"""What is told at the end: the checks, the figures, an answer in SQL, and how to go on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.demo import chart
from penstock.demo.checks import Verdict
from penstock.demo.evidence import Findings, Speed, Timings
from penstock.demo.plan import MINUTES, PIPELINE, TABLE
from penstock.demo.screen import bar, size

if TYPE_CHECKING:
    from penstock.demo.stage import Stage

HOURS_SQL: Final = (
    f"select hour(time) as hour, count(*) as requests, count_if(status >= 500) as failed "
    f"from {TABLE} group by all order by all"
)
CLASSES_SQL: Final = (
    f"select status // 100 as class, count(*) as requests, round(quantile_cont(took_s, 0.95), 3) as p95_s "
    f"from {TABLE} group by all order by all"
)
WIDE: Final = 110
"""Columns of a terminal that has room for everything."""
BAR_LEAST, BAR_MOST = 6, 30
_INDENT: Final = 4
_BESIDE_BAR: Final = 28
"""Cells of a line of a class besides its bar and what the class means."""
_COLOURS: Final = {2: "green", 3: "cyan", 4: "yellow", 5: "red"}
_MEANS: Final = {2: "fine", 3: "elsewhere, or not changed", 4: "not found, not allowed", 5: "failed"}


def print_checks(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Every check with its mark; one that failed is not to be missed."""
    console.print()
    console.print(Text("  Checked, when all had come to rest", "bold"))
    grid = Table.grid(padding=(0, 2))
    for each in verdicts:
        mark = Text("  ✔", "bold green") if each.good else Text("  ✖ FAILED", "bold red")
        grid.add_row(mark, each.name, Text(each.words, "" if each.good else "bold red", overflow="fold"))
    console.print(grid, highlight=False)


def print_figures(console: Console, found: Findings) -> None:
    console.print()
    console.print(Text("  Measured", "bold"))
    grid = Table.grid(padding=(0, 2))
    for name, words in figures(found.speed, found.timings):
        grid.add_row(f"    {name}", words)
    console.print(grid, highlight=False)


def figures(speed: Speed, timings: Timings) -> list[tuple[str, str]]:
    """What is said about speed; pure."""
    found = [
        ("throughput", f"{speed.lines_per_s:,.0f} lines/s, {size(speed.bytes_per_s)}/s for {speed.seconds:.0f} s"),
        ("catching up", f"up to {speed.peak_rows_per_s:,.0f} rows/s into the table, {speed.commits} commits"),
        (
            "freshness",
            f"p50 {speed.fresh_p50_s:.1f} s, p99 {speed.fresh_p99_s:.1f} s from a line written to its row committed, "
            "crashes included",
        ),
    ]
    if timings.failover_s is not None and timings.in_sync_s is not None:
        words = f"new leaders after {timings.failover_s:.1f} s; in sync {timings.in_sync_s:.1f} s after its return"
        found.append(("node killed", words))
    if timings.agent_s is not None:
        found.append(("agent killed", f"the next one had committed lines after {timings.agent_s:.1f} s"))
    if timings.pipeline_s is not None:
        found.append(
            ("pipeline killed", f"the table grew again after {timings.pipeline_s:.1f} s, Spark's start included")
        )
    return found


def print_answer(console: Console, stage: Stage) -> None:
    """The table, asked the way `penstock lake query` asks it."""
    hours, classes = _asked(stage, HOURS_SQL), _asked(stage, CLASSES_SQL)
    console.print()
    console.print(Text("  Asked: what happened today?", "bold"))
    # A shell takes SQL of several lines too.
    for line in wrapped(f'penstock lake query "{HOURS_SQL}"', _room(console)):
        console.print(Text(f"    {line}", "dim"), soft_wrap=True, highlight=False)
    console.print()
    for answer in answer_lines(hours, classes, _room(console)):
        console.print(Text("    ").append_text(answer), soft_wrap=True, highlight=False)


def _room(console: Console) -> int:
    """Of a line behind its indentation; where there is no terminal, lines may be as long as they are."""
    return (console.width if console.is_terminal else WIDE) - _INDENT


def wrapped(words: str, room: int) -> list[str]:
    """Lines that are broken between words."""
    return textwrap.wrap(words, max(1, room), break_long_words=False, break_on_hyphens=False)


def answer_lines(hours: Sequence[dict[str, Any]], classes: Sequence[dict[str, Any]], room: int) -> list[Text]:
    """Requests by hour as columns, their failed part red; classes of answers as bars. Pure."""
    requests, failed = [each["requests"] for each in hours], [each["failed"] for each in hours]
    most = max(requests, default=0)
    cells = chart.wide(len(hours), room)
    lines = chart.columns(requests, failed, column_cells=cells)
    busiest = f"{most:,} requests in the busiest hour"
    if lines[0].cell_len + 1 + len(busiest) <= room:
        lines[0].append(f" {busiest}", "dim")
    else:
        lines.insert(0, Text(busiest, "dim"))
    lines.append(Text(chart.labels([f"{each['hour']:02d}" for each in hours], 3, cells), "dim"))
    worst = max(hours, key=lambda each: each["failed"] / max(1, each["requests"]), default=None)
    if worst is not None and worst["failed"]:
        share = worst["failed"] / worst["requests"]
        lines.append(Text(f"at {worst['hour']}:00 something was down: {share:.0%} of the requests failed", "red"))
    lines.append(Text())
    return [*lines, *_class_lines(classes, room)]


def _class_lines(classes: Sequence[dict[str, Any]], room: int) -> list[Text]:
    """A line for each class; without room for a bar and what the class means, the meaning goes."""
    total = sum(each["requests"] for each in classes)
    longest = max(map(len, _MEANS.values())) + 1
    meaning = longest if room >= _BESIDE_BAR + BAR_LEAST + longest else 0
    bar_cells = max(BAR_LEAST, min(BAR_MOST, room - _BESIDE_BAR - meaning))
    lines = []
    for each in classes:
        kind = int(each["class"])
        line = Text(f"{kind}xx  ").append(bar(each["requests"], total, bar_cells), _COLOURS.get(kind, ""))
        means = _MEANS.get(kind, "").ljust(meaning) if meaning else ""
        lines.append(line.append(f" {each['requests']:>9,}  {means}p95 {each['p95_s']:.2f} s"))
    return lines


def _asked(stage: Stage, sql: str) -> list[dict[str, Any]]:
    from penstock.spark.lake.query import ask_duckdb
    from penstock.spark.lake.warehouse import Warehouse

    found: list[dict[str, Any]] = ask_duckdb(Warehouse(str(stage.warehouse)), sql).rows.to_pylist()
    return found


def print_next(console: Console, stage: Stage, *, kept: bool) -> None:
    """What to type now."""
    console.print()
    folder = stage.folder
    first = f"{stage.nodes.bootstrap.partition(',')[0]} --data-dir {folder}"
    if kept:
        console.print(Text("  All of it is still up. Go on:", "bold"))
        commands = [
            (f"penstock tail {MINUTES} -b {first}", "sums of the minutes as they change"),
            (f"penstock cluster partitions list -b {first}", "who leads what"),
            (f"penstock dev kill 2 --data-dir {folder}", "kill another one; `dev start 2` brings it back"),
            (f"penstock agent status -c {folder}/agent.toml", "how far the agent is"),
            (f"penstock pipeline status {PIPELINE} -b {first}", "how far the pipeline is"),
            (f'penstock lake query --warehouse {folder}/lake "select count(*) from {TABLE}"', "ask the table"),
            (f"penstock console -b {first} --warehouse {folder}/lake", "all of it in a browser"),
            (f"penstock dev stop --data-dir {folder}", "stops everything"),
        ]
    else:
        console.print(Text("  Go on:", "bold"))
        commands = [
            ("penstock dev --demo --keep", "the same, and leaves it up to look around"),
            ("penstock dev --nodes 3", "a cluster of your own"),
            ("penstock agent run -c agent.toml", "your logs into topics: docs/guides/agents.md"),
            ("penstock pipeline init", "topics into tables: docs/guides/pipelines.md"),
        ]
    for line in command_lines(commands, _room(console), aligned=not kept):
        console.print(Text("    ").append_text(line), soft_wrap=True, highlight=False)
    console.print()


def command_lines(commands: Sequence[tuple[str, str]], room: int, *, aligned: bool) -> list[Text]:
    """Commands with what they are for behind them, or above them where that does not fit. Pure."""
    width = max(len(command) for command, _ in commands) if aligned else 0
    lines: list[Text] = []
    for command, words in commands:
        line = Text(command.ljust(width), "bold").append(f"  # {words}", "dim")
        if line.cell_len <= room:
            lines.append(line)
        else:
            lines += [*(Text(each, "dim") for each in wrapped(f"# {words}", room)), Text(command, "bold")]
    return lines
