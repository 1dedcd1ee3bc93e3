"""What a soak found, written down: JSON, a page, charts over time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from bench import machine, places
from bench.soak.mix import GROUPS, KEPT_BYTES, TOPICS, WRITERS, total_records_per_s
from bench.soak.query import HEAP, TRIGGER_S
from bench.soak.ramp import Step
from bench.soak.verdict import Verdict, Window
from penstock.bench.plot import line_chart


@dataclass(frozen=True)
class Found:
    """All of a run."""

    minutes: float
    warm_s: float
    bytes_per_s_most: float
    bytes_per_s: float
    steps: Sequence[Step]
    windows: Sequence[Window]
    blocks_p99_ms: Sequence[float]
    verdicts: Sequence[Verdict]
    errors: Sequence[str]
    totals: Mapping[str, int]
    """Records written, by topic, from the first to the last."""
    counts: Mapping[str, float]
    """What else was counted, in words."""

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


@dataclass(frozen=True)
class Chart:
    """Lines over the minutes of the run."""

    name: str
    title: str
    y_label: str
    lines: Mapping[str, Callable[[Window], float]]


CHARTS = (
    Chart(
        "soak-rates",
        "Records a second",
        "records/s",
        {
            "written": lambda window: window.written_per_s,
            "read, all groups and the query": lambda window: window.read_per_s,
        },
    ),
    Chart(
        "soak-latency",
        "Produce latency of the probe, ten seconds each",
        "ms",
        {"p99": lambda window: window.p99_ms, "p50": lambda window: window.p50_ms},
    ),
    Chart("soak-memory", "Memory of the node", "MB RSS", {"node": lambda window: window.node_rss_mb}),
    Chart(
        "soak-cpu",
        "Cores' worth of CPU",
        "CPU-s/s",
        {
            "node": lambda window: window.node_cores,
            "writers, groups, probe": lambda window: window.clients_cores,
            "Spark": lambda window: window.spark_cores,
        },
    ),
    Chart(
        "soak-lag",
        "How far readers are behind, the worst of ten seconds",
        "s",
        {"the latest group": lambda window: window.group_lag_s, "the query": lambda window: window.query_lag_s},
    ),
)


def write(found: Found, *, publish: bool) -> list[Path]:
    """bench/results/soak.json; when the run is to be kept, also the page and its charts in docs/benchmarks."""
    places.RESULTS.mkdir(parents=True, exist_ok=True)
    data = places.RESULTS / "soak.json"
    data.write_text(json.dumps(as_json(found), indent=1) + "\n")
    if not publish:
        return [data]
    charts = [places.DOCS / f"{chart.name}.svg" for chart in CHARTS]
    for chart, path in zip(CHARTS, charts, strict=True):
        path.write_text(drawn(chart, found))
    page = places.DOCS / "soak.md"
    page.write_text(as_markdown(found))
    return [data, page, *charts]


def as_json(found: Found) -> dict[str, object]:
    """Windows as columns: a row for each would be mostly names."""
    rows = [asdict(window) for window in found.windows]
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    whole = {**asdict(found), "windows": columns}
    return {"suite": "soak", "command": command(found), "machine": facts(), "passed": found.passed, **whole}


def drawn(chart: Chart, found: Found) -> str:
    lines = {
        name: [(window.at_s / 60, value(window)) for window in found.windows] for name, value in chart.lines.items()
    }
    return line_chart(chart.title, lines, x_label="minutes", y_label=chart.y_label)


def command(found: Found) -> str:
    return f"make bench SUITE=soak MINUTES={found.minutes:g}"


def facts() -> dict[str, str]:
    described = machine.describe(["penstock"])
    described.update({name: metadata.version(name) for name in ("confluent-kafka", "pyspark", "pyarrow")})
    return described


def as_markdown(found: Found) -> str:
    rate, most = total_records_per_s(found.bytes_per_s), total_records_per_s(found.bytes_per_s_most)
    share = found.bytes_per_s / found.bytes_per_s_most
    lines = [
        "# A soak: hours in small",
        "",
        f"One node for {found.minutes:g} minutes at {share:.0%} of the most that this mix carries, with everybody on",
        f"the same machine: **{rate:,.0f} records/s ({found.bytes_per_s / 1e6:.1f} MB/s)** of {most:,.0f} "
        f"({found.bytes_per_s_most / 1e6:.1f} MB/s).",
        "",
        *verdict_table(found.verdicts),
        "",
        "The mix:",
        "",
        *(f"- topic `{topic}`: four partitions, records of {size:,} bytes" for topic, size in TOPICS.items()),
        *(
            f"- writer {writer.number}: {writer.client}, `{writer.topic}`, {writer.codec}, {writer.share:.0%} of the"
            " bytes, idempotent, acks=all"
            for writer in WRITERS
        ),
        *(
            f"- group `{group.name}`: {group.client}, the {group.protocol} protocol, {group.members} members and one"
            f" that comes and goes, commits every second; reads {' and '.join(f'`{topic}`' for topic in group.topics)}"
            for group in GROUPS
        ),
        f"- a Spark query: `orders` into a Delta table every {TRIGGER_S} s, a heap of {HEAP}",
        "- a probe: 100 single records a second over one connection, acks=all, open loop",
        f"- retention by size: {KEPT_BYTES / 2**30:.0f} GiB in all, so segments roll and are deleted all the time",
        "",
        "Every record carries its writer's number and a count. Each group checks that counts follow one another in",
        "every partition without a gap and without a double, and the Delta table is asked the same at the end. The",
        "most is the highest rate at which writers get 95 % of what is asked of them, groups stay within two seconds,",
        "the query's batches fit their interval and no probe waits for a second. An error is anything that a client,",
        "the query or the node's log complains of. Nothing is fsynced before an acknowledgement (Kafka's default).",
        "",
        f"Made by `{command(found)}` on this machine:",
        "",
        *(f"- {name}: {value}" for name, value in facts().items()),
        "",
    ]
    for chart in CHARTS:
        lines += [f"![{chart.title}]({chart.name}.svg)", ""]
    lines += ["## Figures", "", *figures(found), ""]
    if found.errors:
        lines += ["## Errors", "", *(f"- `{words}`" for words in found.errors[:20]), ""]
    lines += ["## On the way to the most", "", "| MB/s | records/s | |", "|--:|--:|---|"]
    lines += [
        f"| {step.bytes_per_s / 1e6:.1f} | {total_records_per_s(step.bytes_per_s):,.0f} "
        f"| {', '.join(step.failing) or 'carried'} |"
        for step in found.steps
    ]
    return "\n".join(lines) + "\n"


def verdict_table(verdicts: Sequence[Verdict]) -> list[str]:
    rows = [f"| {each.claim} | {each.found} | {'yes' if each.passed else '**no**'} |" for each in verdicts]
    return ["| claim | found | held |", "|---|---|---|", *rows]


def figures(found: Found) -> list[str]:
    """Medians over the windows that count, and what was counted in all."""
    measured = [window for window in found.windows if window.at_s > found.warm_s]

    def middle(value: Callable[[Window], float]) -> float:
        ordered = sorted(value(window) for window in measured)
        return ordered[len(ordered) // 2] if ordered else 0.0

    rows = {
        "records written": f"{sum(found.totals.values()):,}",
        "written, median": f"{middle(lambda window: window.written_per_s):,.0f} records/s",
        "read, median": f"{middle(lambda window: window.read_per_s):,.0f} records/s",
        "probe p50, median of windows": f"{middle(lambda window: window.p50_ms):.2f} ms",
        "probe p99 by stretch": ", ".join(f"{p99:.2f}" for p99 in found.blocks_p99_ms) + " ms",
        "node, median": f"{middle(lambda window: window.node_rss_mb):.0f} MB, "
        f"{middle(lambda window: window.node_cores):.2f} cores",
        "writers, groups and probe, median": f"{middle(lambda window: window.clients_rss_mb):.0f} MB, "
        f"{middle(lambda window: window.clients_cores):.2f} cores",
        "Spark, median": f"{middle(lambda window: window.spark_rss_mb):.0f} MB, "
        f"{middle(lambda window: window.spark_cores):.2f} cores",
        "longest batch of the query": f"{max((window.query_batch_s for window in measured), default=0):.1f} s",
        "files open in the node, most": f"{max((window.files for window in measured), default=0)}",
        "disk, most": f"{max((window.disk_mb for window in measured), default=0):,.0f} MB",
        "loop of the node held over 100 ms": f"{sum(window.loop_stalls for window in measured)} times",
        **{name: f"{count:,.0f}" for name, count in found.counts.items()},
    }
    return ["| figure | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows.items())]
