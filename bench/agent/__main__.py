"""`python -m bench.agent` (make bench SUITE=agent): figures of one run, written to docs/benchmarks/agent.md.

Parts: files (prepared ones, beside rsyslog and a script), parsed (JSON and access logs), growing (one file at a rate,
memory over time), quiet (ten thousand files that nobody writes to), network (syslog and HTTP), burst (the topic as a
buffer in front of the lake), profile. `--quick` is a look of two minutes whose figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from bench import brokers, machine, report
from bench.agent.burst import Burst, Plan
from bench.agent.charts import Chart, Line, Panel
from bench.agent.contenders import AGENT, BARE, RSYSLOG, SCRIPT, Agent, Contender, Rsyslog, Script, find_rsyslog
from bench.agent.course import Sample
from bench.agent.network import network
from bench.agent.profile import profile_lines
from bench.agent.quiet import quiet_files
from bench.agent.tailing import MB, NODE, PARSED, RAW, Tailing
from bench.brokers import PENSTOCK_NODE, Running
from bench.series import Results, Series

PARTS = ("files", "parsed", "growing", "quiet", "network", "burst", "profile")
TITLES = {
    AGENT: "Penstock agent",
    BARE: "without headers",
    RSYSLOG: "rsyslog",
    SCRIPT: "confluent-kafka script",
}


CHARTS = {"buffer": "the burst over time", "memory": "memory over time"}
RESULTS = report.ROOT / "bench" / "results" / "agent.json"
PROFILE = RESULTS.with_name("agent-profile.md")


@dataclass(frozen=True)
class Settings:
    """How long and how much. The defaults stay under fifteen minutes on two cores."""

    rounds: int = 3
    raw_bytes: int = 200_000_000
    parsed_bytes: int = 60_000_000
    growing_mb_per_s: float = 10.0
    growing_s: float = 15.0
    busy_mb_per_s: float = 50.0
    busy_s: float = 40.0
    quiet_files: int = 10_000
    idle_s: float = 10.0
    network_s: float = 5.0
    sink_rate: int = 20_000
    calm_s: float = 10.0
    burst_s: float = 20.0
    profile_bytes: int = 300_000_000

    def quick(self) -> Settings:
        return Settings(
            rounds=1,
            raw_bytes=40_000_000,
            parsed_bytes=10_000_000,
            growing_s=3.0,
            busy_s=5.0,
            quiet_files=500,
            idle_s=2.0,
            network_s=1.0,
            sink_rate=5_000,
            calm_s=4.0,
            burst_s=6.0,
            profile_bytes=40_000_000,
        )


class Suite:
    """Measures into `results`; each part may be run alone. `charts` and `profiled` are for the page."""

    def __init__(self, settings: Settings, broker: Running, home: Path, say: Callable[[str], None]) -> None:
        self.settings, self.results = settings, Results(RSYSLOG)
        self.charts: dict[str, Chart] = {}
        self.profiled: list[str] = []
        self.remarks: list[str] = []
        self._broker, self._home, self._say = broker, home, say
        self._contenders: dict[str, Contender] = {AGENT: Agent(), BARE: _bare(), SCRIPT: Script()}
        self.rsyslog, why_not = find_rsyslog()
        if self.rsyslog is None:
            self.remarks.append(why_not)
        else:
            self._contenders[RSYSLOG] = self.rsyslog
        self._tailing = Tailing(broker, self._contenders, home, self.results, say)

    def files(self) -> None:
        self._tailing.prepared(RAW, self.settings.rounds, self.settings.raw_bytes)

    def parsed(self) -> None:
        self._tailing.prepared(PARSED, self.settings.rounds, self.settings.parsed_bytes)

    def growing(self) -> None:
        """At a rate that both can carry; then the agent alone at one that keeps it busy, for its memory."""
        settings = self.settings
        for name in (AGENT, RSYSLOG):
            if name in self._contenders:
                self._say(f"a file that grows slowly by {name}")
                self._tailing.growing(name, 200, settings.growing_mb_per_s * MB, settings.growing_s)
        self._say(f"a file that grows fast, {settings.busy_s:.0f} s")
        course = self._tailing.growing(AGENT, 200, settings.busy_mb_per_s * MB, settings.busy_s)
        self.charts["memory"] = memory_chart(course, settings)

    def quiet(self) -> None:
        settings = self.settings
        both = {name: each for name, each in self._contenders.items() if name in (AGENT, RSYSLOG)}
        quiet_files(
            self._broker, both, self._tailing, self._home, self.results,
            settings.quiet_files, settings.idle_s, self._say,
        )  # fmt: skip

    def network(self) -> None:
        network(self._broker, self._tailing, self._home, self.results, self.settings.network_s, self._say)

    def burst(self) -> None:
        settings = self.settings
        plan = Plan(settings.sink_rate, settings.calm_s, settings.burst_s, drain_s_max=120)
        self.charts["buffer"] = Burst(self._broker, self._home, self.results, self._say).run(plan)

    def profile(self) -> None:
        self._say("profile of the agent")
        self.profiled = profile_lines(self._broker, self._tailing, self._home, self.settings.profile_bytes)


def _bare() -> Agent:
    bare = Agent()
    bare.name = BARE
    return bare


def memory_chart(samples: list[Sample], settings: Settings) -> Chart:
    start_s = samples[0].at_s

    def memory(label: str, process: str) -> Line:
        return Line(label, [(each.at_s - start_s, each.used[process].rss_bytes / MB) for each in samples])

    behind = [(each.at_s - start_s, (each.more["written"] - each.records) * 200 / MB) for each in samples]
    return Chart(
        f"One file that grows at {settings.busy_mb_per_s:.0f} MB/s: memory over time",
        [
            Panel("MB RSS", [memory("agent", AGENT), memory("node", NODE)]),
            Panel("written and not yet acknowledged, MB", [Line("behind", behind)]),
        ],
    )


INTRODUCTION = (
    "Figures of a table are of one run on one machine: one Penstock node with its defaults, and beside it one process",
    "at a time that carries lines; both share the two cores. A ratio above 1 means that the agent is ahead of rsyslog",
    "(imfile to omkafka), which is written in C; the version that is measured cannot add headers.",
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
    "- A file that grows: another process appends lines every 10 ms. The age is that of the oldest line that was",
    "  written and not yet acknowledged, looked at every 20 ms; a linger of 20 ms is part of it.",
    "- The burst: a pipeline with `maxOffsetsPerTrigger` is a sink whose rate is known. Lines are numbered; at the",
    "  end the Delta table is read, and every line must be there once.",
)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.agent", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round; figures only to see that it works")
    parser.add_argument("--rounds", type=int, help="rounds (default 3)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--keep", action="store_true", help="parts that are not run keep the figures of the last run")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    parts = given.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    settings = Settings().quick() if given.quick else Settings()
    if given.rounds:
        settings = Settings(**{**asdict(settings), "rounds": given.rounds})
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    # Asked to end it stops what it started, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    brokers.allow_many_files()
    with brokers.running([PENSTOCK_NODE]) as (broker,), brokers.scratch() as home:
        suite = Suite(settings, broker, home, say)
        for part in PARTS:
            if part in parts:
                getattr(suite, part)()
    print(report.terminal(suite.results, TITLES))
    print("\n".join(suite.profiled))
    if given.keep:
        keep(suite)
    write_page(suite, settings, publish=not given.no_page)
    print(f"took {time.monotonic() - began:.0f} s")


def keep(suite: Suite) -> None:
    """Figures of the last run for the parts that were not run now; nothing is mixed within a part."""
    if not RESULTS.exists():
        return
    measured, suite.results = suite.results, Results(RSYSLOG)
    groups = measured.groups()
    for old in json.loads(RESULTS.read_text())["series"]:
        if old["group"] not in groups:
            for contender, values in old["samples"].items():
                for value in values:
                    suite.results.add(
                        old["group"],
                        old["name"],
                        old["unit"],
                        contender,
                        value,
                        higher_is_better=old["higher_is_better"],
                    )
        else:
            # In the old place.
            _move(groups.get(old["group"], []), suite.results)
    for series in groups.values():
        _move(series, suite.results)
    if not suite.profiled and PROFILE.exists():
        suite.profiled = PROFILE.read_text().splitlines()


def _move(series: Sequence[Series], into: Results) -> None:
    for each in series:
        into.series[each.group, each.name] = each


def write_page(suite: Suite, settings: Settings, *, publish: bool) -> None:
    page = report.Page(
        suite="agent",
        title="Agents: files, syslog and HTTP into a node, and the topic as a buffer",
        command="make bench SUITE=agent",
        introduction=INTRODUCTION,
        machine=facts(suite.rsyslog),
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=suite.remarks,
        titles=TITLES,
    )
    written = report.write(page, suite.results, publish=publish)
    if publish:
        docs = report.ROOT / "docs" / "benchmarks"
        text = (docs / "agent.md").read_text()
        for name, chart in suite.charts.items():
            (docs / f"{name}.svg").write_text(chart.svg())
            written.append(docs / f"{name}.svg")
        for name, words in CHARTS.items():
            if (docs / f"{name}.svg").exists():
                text += f"\n![{words}]({name}.svg)\n"
        if suite.profiled:
            PROFILE.write_text("\n".join(suite.profiled) + "\n")
            text += "\n## Where the agent's time goes, 200 B lines as they are\n\n" + "\n".join(suite.profiled) + "\n"
        (docs / "agent.md").write_text(text)
    print("\nwritten: " + ", ".join(str(path.relative_to(report.ROOT)) for path in written))


def facts(rsyslog: Rsyslog | None) -> dict[str, str]:
    found = machine.describe([PENSTOCK_NODE])
    found.update({name: metadata.version(name) for name in ("uvloop", "lz4", "pyspark", "deltalake")})
    found["confluent-kafka"] = metadata.version("confluent-kafka")
    if rsyslog is not None:
        found["rsyslog"] = rsyslog.version()
    return found


if __name__ == "__main__":
    main()
