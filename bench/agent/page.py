"""What a run found, written down: the page, its charts, the profile; and what is kept of the run before."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from bench import machine, places
from bench.agent.burst import FIGURES as BURST_FIGURES
from bench.agent.burst import GROUP as BURST_GROUP
from bench.agent.charts import Chart
from bench.agent.contenders import AGENT, BARE, EXACTLY, RSYSLOG, SCRIPT, Rsyslog
from bench.brokers import PENSTOCK_NODE
from bench.places import DOCS
from penstock.bench import report
from penstock.bench.series import Results, Series

TITLES = {
    AGENT: "Penstock agent",
    EXACTLY: "with exactly_once",
    BARE: "without headers",
    RSYSLOG: "rsyslog",
    SCRIPT: "confluent-kafka script",
}


CHARTS = {
    "buffer": ("A burst", "written, acknowledged and in the table, over time"),
    "memory": ("One file that grows at 50", "memory over time"),
}
"""By name: the heading they stand under, as it begins, and what they show."""

RESULTS = places.RESULTS / "agent.json"
PROFILE = RESULTS.with_name("agent-profile.md")


KEPT = (
    "Parts were run one after another (`--keep`), on a machine that did other work at times, and a part that was run"
    " again shows its last run. How old lines are depends on that other work more than anything else here: with the"
    " machine busy the agent was far ahead of rsyslog in it, with the machine quiet it is behind."
)


@dataclass
class Findings:
    """Figures, charts by name, a table of the profile, and what is to be said besides."""

    results: Results = field(default_factory=lambda: Results(ours=AGENT, rival=RSYSLOG))
    charts: dict[str, Chart] = field(default_factory=dict)
    profiled: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


INTRODUCTION = (
    "Figures of a table are of one run on one machine: one Penstock node with its defaults, and beside it one process",
    "at a time that carries lines; both share the two cores. A ratio above 1 means that the agent is ahead of rsyslog",
    "(imfile to omkafka), which is written in C; the version that is measured cannot add headers. rsyslog has a queue",
    "and batches larger than its defaults, and one worker; somebody who knows it well may get more out of it.",
    "",
    "- The agent runs by its command with the defaults of its file: lz4, `acks = all` with idempotence, a linger of",
    "  20 ms, headers `host` and `path` on every record, 64 MB of memory. *Without headers* is the same with `headers",
    "  = []`. rsyslog and the script have lz4, acks from all and the same linger; the script adds the same headers.",
    "- A record counts when it is below the high watermark, so it is acknowledged. The node fsyncs nothing before an",
    "  acknowledgement (Kafka's default); the agent fsyncs its checkpoints (SQLite, `synchronous = FULL`) off its",
    "  loop and after the acknowledgement. Files are read out of the page cache.",
    "- Prepared files: the clock runs from the first record in the topic to the last, and exactly as many records as",
    "  lines must be there. MB and GB are those of the lines; CPU seconds are those of the whole process, or of the",
    "  node.",
    "- *With exactly_once* lines and positions go in transactions, and a record counts when it is committed: where",
    "  readers of committed records stand. Every such run ends with a count by such a reader. Markers of transactions,",
    "  four or five in half a second, count as lines while it runs.",
    "- A file that grows: another process appends lines every 10 ms. The age is that of the oldest line that was",
    "  written and not yet acknowledged, looked at every 20 ms; a linger of 20 ms is part of it.",
    "- The burst: a pipeline with `maxOffsetsPerTrigger` is a sink whose rate is known. Lines are numbered; at the",
    "  end the Delta table is read, and every line must be there once. The first lines after a quiet time wait until",
    "  the agent looks at the file again, up to two seconds (`poll_max`); they are part of the age before the burst.",
)


def keep(found: Findings) -> None:
    """Figures of the last run for the parts that were not run now; nothing is mixed within a part."""
    if not RESULTS.exists():
        return
    found.remarks.append(KEPT)
    measured, found.results = found.results, Results(ours=AGENT, rival=RSYSLOG)
    groups = measured.groups()
    for old in json.loads(RESULTS.read_text())["series"]:
        if old["group"] not in groups:
            for contender, values in old["samples"].items():
                for value in values:
                    found.results.add(
                        old["group"],
                        old["name"],
                        old["unit"],
                        contender,
                        value,
                        higher_is_better=old["higher_is_better"],
                    )
        else:
            # In the old place.
            _move(groups.get(old["group"], []), found.results)
    for series in groups.values():
        _move(series, found.results)
    if not found.profiled and PROFILE.exists():
        found.profiled = PROFILE.read_text().splitlines()


def _move(series: Sequence[Series], into: Results) -> None:
    for each in series:
        into.series[each.group, each.name] = each


def write(found: Findings, settings: Mapping[str, object], rsyslog: Rsyslog | None, *, publish: bool) -> list[Path]:
    """The results as JSON; when they are to be kept, also the page with its charts."""
    page = report.Page(
        suite="agent",
        title="Agents: files, syslog and HTTP into a node, and the topic as a buffer",
        command="make bench SUITE=agent",
        introduction=[*headlines(found.results), *INTRODUCTION],
        machine=facts(rsyslog),
        parameters={name.replace("_", " "): value for name, value in settings.items()},
        remarks=found.remarks,
        titles=TITLES,
    )
    written = places.write(page, found.results, publish=publish)
    if found.profiled:
        PROFILE.write_text("\n".join(found.profiled) + "\n")
    if publish:
        written += [_write_chart(name, chart) for name, chart in found.charts.items()]
        text = (DOCS / "agent.md").read_text()
        for name, (group, words) in CHARTS.items():
            if (DOCS / f"{name}.svg").exists():
                text = re.sub(
                    rf"^## {group}.*$", rf"\g<0>\n\n![{words}]({name}.svg)", text, count=1, flags=re.MULTILINE
                )
        if found.profiled:
            text += "\n## Where the agent's time goes, 200 B lines as they are\n\n" + "\n".join(found.profiled) + "\n"
        (DOCS / "agent.md").write_text(text)
    return written


def _write_chart(name: str, chart: Chart) -> Path:
    path = DOCS / f"{name}.svg"
    path.write_text(chart.svg())
    return path


def headlines(results: Results) -> list[str]:
    """What one wants to know first, as far as it was measured."""
    lines = []
    files = results.series.get(("files into a topic", "200 B, raw, 1 file"))
    if files and (rate := files.median(AGENT)):
        ratio = files.ratio()
        beside = f", {ratio:.1f} times what rsyslog carries" if ratio else ""
        lines.append(f"- A file of 200 byte lines goes into the node with **{rate:.0f} MB/s**{beside}.")

    def burst(name: str) -> float | None:
        series = results.series.get((BURST_GROUP, name))
        return series.median(AGENT) if series else None

    taken, acknowledged, lag = (burst(name) for name in BURST_FIGURES)
    if taken and acknowledged and lag:
        lines += [
            f"- In a burst the lake sink takes {taken:,.0f} rows a second while the agent carries {acknowledged:,.0f}:",
            f"  the table falls behind by {lag:,.0f} lines and catches up; none is lost and none is there twice.",
        ]
    return ["In short:", "", *lines, ""] if lines else []


def facts(rsyslog: Rsyslog | None) -> dict[str, str]:
    found = machine.describe([PENSTOCK_NODE])
    found.update({name: metadata.version(name) for name in ("uvloop", "lz4", "pyspark", "deltalake")})
    found["confluent-kafka"] = metadata.version("confluent-kafka")
    if rsyslog is not None:
        found["rsyslog"] = rsyslog.version()
    return found
