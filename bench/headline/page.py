"""The page docs/benchmarks/README.md and its plots, from a recorded run and the reasons that people wrote."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.brokers import APACHE, NULL, PENSTOCK_NODE, TITLES
from bench.headline import latency, tools
from bench.headline.record import Recorded
from bench.headline.words import CONVENTION, GROUP_WORDS, HOW, OTHER_PAGES
from penstock.bench import report
from penstock.bench.plot import line_chart, ratio_chart
from penstock.bench.series import Series

REASONS = Path(__file__).with_name("reasons.toml")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class Plot:
    """A line chart of one of the run's curves."""

    key: str
    title: str
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False

    @property
    def file(self) -> str:
        return f"headline-{self.key}.svg"


_LONGER = "one request in so many takes longer (2: p50, 100: p99, 1k: p99.9)"
PLOTS = (
    Plot("batch-size", "Throughput by batch size, records of 1 KB", "batch, bytes", "MB/s", log_x=True, log_y=True),
    Plot("record-size", "Throughput by record size, batches of 64 KB", "record, bytes", "MB/s", log_x=True),
    Plot("latency", _capital(latency.PRODUCE), _LONGER, "ms", log_x=True, log_y=True),
    Plot("end-to-end", _capital(latency.END_TO_END), _LONGER, "ms", log_x=True, log_y=True),
    Plot("growth", "Rates as a topic grows, one partition", "GB in the topic", "MB/s"),
    Plot("disk", "Produce in the disk regime", "GB written", "MB/s"),
)
RATIOS, MEMORY, SUMMARY = "headline-ratios.svg", "headline-memory.svg", "headline-summary.svg"
# What the first page of the project shows: four that people ask about, and one that Kafka wins.
SUMMARY_NAMES = {
    "start: command to first acknowledged produce": "from the command to the first record",
    "idle: memory": "memory at rest",
    "produce latency at 20 MB/s, acks=all: p99": "p99 of a produce at 20 MB/s",
    "produce, pinned: broker CPU: 128 KB batches, 1 KB records": "CPU, one batch of 128 KB a request",
    "produce, pinned: broker CPU: 100 partitions x 1 KB a request": "CPU, 100 tiny batches a request",
}
_MEMORY_GROUPS = ("start", "idle", "10,000 partitions")


def reasons(path: Path = REASONS) -> dict[str, str]:
    """Why a target is missed, by the figure's name; kept by hand, so that a new run does not lose them."""
    found = tomllib.loads(path.read_text())["reasons"]
    return {str(figure): str(text).strip() for figure, text in found.items()}


def files(run: Recorded, why: Mapping[str, str]) -> dict[str, str]:
    """The page and its plots, by file name. Pure."""
    plots = {
        plot.file: line_chart(
            plot.title,
            _ours_first(run.curves[plot.key]),
            x_label=plot.x_label,
            y_label=plot.y_label,
            log_x=plot.log_x,
            log_y=plot.log_y,
        )
        for plot in PLOTS
        if run.curves.get(plot.key)
    }
    compared = [each.series for each in run.verdicts if each.series and each.target.against == APACHE]
    resting = [each for group in _MEMORY_GROUPS for each in run.results.groups().get(group, [])]
    title = f"{TITLES[PENSTOCK_NODE]} beside {TITLES[APACHE]}: times better"
    for file, series in ((RATIOS, compared), (MEMORY, resting)):
        if any(each.ratio() is not None for each in series):
            plots[file] = ratio_chart(series, title)
    by_figure = {f"{group}: {name}": series for (group, name), series in run.results.series.items()}
    told = [by_figure[figure] for figure in SUMMARY_NAMES if figure in by_figure]
    if any(each.ratio() is not None for each in told):
        plots[SUMMARY] = ratio_chart(told, f"{title}, on a logarithmic scale", SUMMARY_NAMES, with_values=True)
    return {"README.md": markdown(run, why, list(plots)), **plots}


def _ours_first(lines: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, Sequence[tuple[float, float]]]:
    order = [TITLES[PENSTOCK_NODE], TITLES[APACHE], TITLES[NULL]]
    place = {line: next(at for at, title in enumerate(order) if line.startswith(title)) for line in lines}
    return {line: lines[line] for line in sorted(lines, key=place.__getitem__)}


def markdown(run: Recorded, why: Mapping[str, str], plots: Sequence[str]) -> str:
    lines = ["# Penstock beside Apache Kafka on one machine", "", _made_by(run), "", *CONVENTION, ""]
    lines += [f"> {remark}\n" for remark in run.data["remarks"]]
    lines += ["## Targets", "", *_targets(run), "", *_missed(run, why)]
    if RATIOS in plots:
        lines += ["", f"![every figure that has a target beside Kafka]({RATIOS})"]
    lines += ["", "## How it was measured", "", *HOW, "", _parameters(run), "", "## Curves", ""]
    lines += [f"![{plot.title}]({plot.file})\n" for plot in PLOTS if plot.file in plots]
    if MEMORY in plots:
        lines += [f"![start-up and memory]({MEMORY})", ""]
    lines += ["Partitions, connections, groups and log size up to 100 GB have plots of their own in [scale](scale.md)."]
    for group, series in run.results.groups().items():
        words = GROUP_WORDS.get(group, ())
        lines += ["", f"## {_capital(group)}", "", *words, *([""] if words else []), *_table(run, series)]
    lines += ["", "## Other pages", "", *OTHER_PAGES]
    return "\n".join(lines) + "\n"


def _made_by(run: Recorded) -> str:
    data = run.data
    machine = ", ".join(f"{name} {value}" for name, value in data["machine"].items())
    return f"Made by `{data['command']}` on {data['date']} in {data['took_s'] / 60:.0f} minutes. Machine: {machine}."


def _parameters(run: Recorded) -> str:
    parameters = ", ".join(f"{name} {value}" for name, value in run.data["parameters"].items())
    return f"Every sample is in [headline.json](headline.json). Parameters: {parameters}."


def _targets(run: Recorded) -> list[str]:
    met = [each.met for each in run.verdicts]
    rows = [
        f"{met.count(True)} of {len(met)} met, {met.count(False)} missed, {met.count(None)} not measured.",
        "",
        "| target | Kafka | Penstock | null broker | figure | needed | Penstock ÷ other (target) | met? |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for each in run.verdicts:
        cells = [report.cell(each.series, name) if each.series else "–" for name in (APACHE, PENSTOCK_NODE, NULL)]
        unit = f" ({each.series.unit})" if each.series else ""
        shown = [f"{each.target.figure}{unit}", *cells, each.shown, each.needed, each.quotient, each.word]
        rows.append("| " + " | ".join(shown) + " |")
    return rows


def _missed(run: Recorded, why: Mapping[str, str]) -> list[str]:
    missed = [each for each in run.verdicts if each.met is False]
    if not missed:
        return ["No target that was measured is missed."]
    lines = ["### Missed, and why", ""]
    for each in missed:
        reason = why.get(each.target.figure, "No reason has been written down yet.")
        lines += [f"**{each.target.figure}** ({each.shown}, needed {each.needed}). {reason}", ""]
    return lines[:-1]


def _table(run: Recorded, series: Sequence[Series]) -> list[str]:
    """A group's figures; where the tools are the load, with the share of the bound."""
    brokers = run.results.brokers(list(TITLES))
    rows = report.table(series, TITLES, brokers)
    if series[0].group not in (tools.PRODUCER, tools.CONSUMER):
        return rows
    shares = [_share(each) for each in series]
    return [
        f"{rows[0]} Penstock of the bound |",
        f"{rows[1]}--:|",
        *(f"{row} {share} |" for row, share in zip(rows[2:], shares, strict=True)),
    ]


def _share(series: Series) -> str:
    ours, bound = series.median(PENSTOCK_NODE), series.median(NULL)
    return f"{ours / bound:.0%}" if ours and bound else "–"
