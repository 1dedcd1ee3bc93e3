"""Writes the findings down: JSON with every reading, a page with a table and plots for each part."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import machine
from bench.scale.found import IDLE_CPU, P50, P99, RESTART, RSS, START, Figure, Findings, Kind
from penstock.bench.plot import line_chart
from penstock.bench.series import readable

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "bench" / "results" / "scale.json"
DOCS = ROOT / "docs" / "benchmarks"
COMMAND = "make bench SUITE=scale"

PLOTTED: Mapping[str, Sequence[Kind]] = {
    "memory": (RSS,),
    "idle": (IDLE_CPU,),
    "start": (START, RESTART),
    "latency": (P50, P99),
}
TITLES = {"memory": "Memory", "idle": "Idle CPU", "start": "Start", "latency": "Produce latency"}
SIZES = {
    "partitions": "partitions",
    "connections": "connections",
    "groups": "groups",
    "log": "GB of log",
}
EACH = {"partitions": "partition", "connections": "connection", "groups": "group", "log": "GB"}

INTRODUCTION = """\
What one node costs as it holds more of something that nobody uses at the moment, and what one more of it costs.
Each row has a reading for each size, the verdict, and the slope of a line through the readings: what one more costs.
**Flat** means that the line rises by less than 15 % over the whole range, or by less than two readings of the same
thing differ on a busy machine (then there is no slope to tell); **linear** that the last stretch follows the slope of
those before it.

- One Penstock node, broker and controller in one process, on Kafka's `server.properties` for a single node.
- CPU is that of the node's process by the kernel's clock, so neither the client's share of the machine nor other work
  on it is in those figures. Times are by the wall clock, of one reading each unless a row says p50; they suffer
  from whatever else runs.
- Idle CPU is read while nobody asks the node anything: its own beat (a metadata record every half second with its
  fsync, a look at the loop's lag every 50 ms) is all there is at the smallest size.
- Produce latency is open loop at {rate:.0f} requests a second to one partition, acks=all: a request counts from when it
  was due. It is read three times, and the median of the readings stands. A start ends with an acknowledged produce
  *and* all partitions led.
"""

WORDS = {
    "partitions": """\
Partitions without a record. A topic counts as made when CreateTopics has answered; the node takes up the new partitions
bit by bit afterwards, or at once when one is asked for, and the second row is the CPU until the last one has its files.
The stalls are the longest wait of a produce to another topic, at the same rate, while the page of metrics is read and
while a topic of {large_topic} partitions is made and removed. By tracemalloc about two thirds of an
idle partition's memory are its log (segment, indexes, producers, epochs, paths), a quarter its replica and its roles.
A full run of Python's garbage collector takes 0.13 to 0.18 s beside ten thousand partitions made since the start, seen
apart from this run; it comes seldom, and after the next start those partitions are no longer its business.""",
    "connections": """\
Each connection has asked ApiVersions and Metadata. In the second line each also has a Fetch standing that waits for a
record in a partition that gets none.""",
    "groups": """\
Groups without members hold one committed offset each. Those with a member get its heartbeat every three seconds, over
ten connections from another process, so their idle CPU is that of heartbeats: it cannot be flat. Costs of single
requests are taken beside them, without the share of the heartbeats.""",
    "log": """\
One partition. A log of so many gigabytes is made of segments of 1,000 batches of 1 MiB, each batch one record whose
value is zeros: lengths, checksums, offsets, times, offset index and time index are all true, and a consumer could read
every record, but the zeros are holes in the files, so that 100 GB take 0.4 GB of the disk. On top of them 50 MB are
produced through the node, which is the segment that a start after kill -9 has to look at again. Reads and look-ups go
to random places, and finding a time reads the batch of 1 MiB that has it, where the log of 0 GB has none; retention is
asked to look every 20 ms instead of every five minutes to see what a look costs.""",
}


def write(found: Findings, plan: Mapping[str, object], *, publish: bool, remarks: Sequence[str] = ()) -> list[Path]:
    """`remarks` say what a reader must know of how the figures came about."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    facts = machine.describe(["penstock"])
    data = {
        "suite": "scale",
        "command": COMMAND,
        "machine": facts,
        "parameters": dict(plan),
        "remarks": list(remarks),
        "figures": [figure.to_json() for figure in found],
    }
    DATA.write_text(json.dumps(data, indent=2) + "\n")
    if not publish:
        return [DATA]
    text = DOCS / "scale.md"
    plots = _plots(found)
    lines = ["# What grows with what", "", INTRODUCTION.format(rate=plan["rate_per_s"])]
    lines += [f"Made by `{COMMAND}` on this machine:", "", *(f"- {name}: {value}" for name, value in facts.items())]
    lines += ["", *(f"> {remark}" for remark in remarks)] if remarks else []
    for part, figures in found.parts().items():
        lines += ["", f"## {part.capitalize()}", "", WORDS[part].format(**plan), ""]
        lines += [f"![{path.stem}]({path.relative_to(DOCS)})" for path in plots.get(part, ())]
        lines += _tables(part, figures)
    text.write_text("\n".join(lines) + "\n")
    return [DATA, text, *(path for paths in plots.values() for path in paths)]


def keep(found: Findings) -> list[str]:
    """Parts that were not run keep the figures of the last run; a remark that says so."""
    measured = set(found.parts())
    if DATA.exists():
        found.keep(json.loads(DATA.read_text())["figures"])
    kept = [part for part in found.parts() if part not in measured]
    return [f"Not of one run: {', '.join(kept)} kept from an earlier one."] if kept else []


def terminal(found: Findings) -> str:
    lines: list[str] = []
    for part, figures in found.parts().items():
        for line in dict.fromkeys(figure.line for figure in figures):
            rows = _rows(part, [figure for figure in figures if figure.line == line])
            widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
            lines += ["", f"{part.upper()}, {line}"]
            lines += [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
            ]
    return "\n".join(lines)


def _tables(part: str, figures: Sequence[Figure]) -> list[str]:
    out: list[str] = []
    for line in dict.fromkeys(figure.line for figure in figures):
        head, *rows = _rows(part, [figure for figure in figures if figure.line == line])
        out += ["", f"**{line[0].upper()}{line[1:]}**", "", "| " + " | ".join(head) + " |"]
        out += ["|---|---|" + "--:|" * (len(head) - 4) + "---|--:|", *("| " + " | ".join(row) + " |" for row in rows)]
    return out


def _rows(part: str, figures: Sequence[Figure]) -> list[list[str]]:
    sizes = sorted({size for figure in figures for size, _ in figure.points()})
    rows = [["figure", "unit", *(f"{size:,.0f}" for size in sizes), "verdict", f"one more {EACH[part]}"]]
    for figure in figures:
        at = dict(figure.points())
        fitted = figure.fit()
        slope = f"{readable(fitted.slope * figure.kind.slope_scale)} {figure.kind.slope_unit}"
        cells = [readable(at[size]) if size in at else "–" for size in sizes]
        told = slope if fitted.slope * (sizes[-1] - sizes[0]) > figure.kind.noise else "–"
        rows.append([figure.kind.name, figure.kind.unit, *cells, fitted.verdict, told])
    return rows


def _plots(found: Findings) -> dict[str, list[Path]]:
    """One plot for each part and group of kinds that has readings."""
    directory = DOCS / "scale"
    directory.mkdir(parents=True, exist_ok=True)
    out: dict[str, list[Path]] = {}
    for part, figures in found.parts().items():
        several = len({figure.line for figure in figures}) > 1
        for name, kinds in PLOTTED.items():
            chosen = [figure for figure in figures if figure.kind in kinds]
            if not chosen:
                continue
            lines = {_label(figure, several, len(kinds) > 1): figure.points() for figure in chosen}
            path = directory / f"{part}-{name}.svg"
            path.write_text(
                line_chart(
                    f"{TITLES[name]} against {SIZES[part]}",
                    lines,
                    x_label=SIZES[part],
                    y_label=chosen[0].kind.unit,
                )
            )
            out.setdefault(part, []).append(path)
    return out


def _label(figure: Figure, several_lines: bool, several_kinds: bool) -> str:
    words = ([figure.kind.name] if several_kinds else []) + ([figure.line] if several_lines else [])
    return ", ".join(words) or figure.kind.name
