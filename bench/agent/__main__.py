"""`python -m bench.agent` (make bench SUITE=agent): figures of one run, written to docs/benchmarks/agent.md.

Parts: files (prepared ones, beside rsyslog and a script), parsed (JSON and access logs), growing (one file at a rate,
memory over time), quiet (ten thousand files that nobody writes to), network (syslog and HTTP), burst (the topic as a
buffer in front of the lake), profile. `--quick` is a look of two minutes whose figures mean nothing.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import brokers, places
from bench.agent import page
from bench.agent.burst import Burst, Plan
from bench.agent.charts import Chart, Line, Panel
from bench.agent.contenders import (
    AGENT,
    BARE,
    EXACTLY,
    RSYSLOG,
    SCRIPT,
    Agent,
    Contender,
    ExactAgent,
    Script,
    find_rsyslog,
)
from bench.agent.course import Sample
from bench.agent.network import network
from bench.agent.page import TITLES, Findings
from bench.agent.profile import profile_lines
from bench.agent.quiet import quiet_files
from bench.agent.tailing import MB, NODE, PARSED, RAW, Tailing
from bench.brokers import PENSTOCK_NODE, Running
from penstock.bench import report

PARTS = ("files", "parsed", "growing", "quiet", "network", "burst", "profile")


@dataclass(frozen=True)
class Settings:
    """How long and how much. The defaults stay under fifteen minutes on two cores."""

    rounds: int = 3
    raw_bytes: int = 150_000_000
    parsed_bytes: int = 60_000_000
    growing_mb_per_s: float = 10.0
    growing_s: float = 10.0
    busy_mb_per_s: float = 50.0
    busy_s: float = 30.0
    quiet_files: int = 10_000
    idle_s: float = 10.0
    network_s: float = 5.0
    sink_rate: int = 20_000
    calm_s: float = 8.0
    burst_s: float = 15.0
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
    """Measures into `found`; each part may be run alone."""

    def __init__(self, settings: Settings, broker: Running, home: Path, say: Callable[[str], None]) -> None:
        self.settings, self.found = settings, Findings()
        self._broker, self._home, self._say = broker, home, say
        self._contenders: dict[str, Contender] = {
            AGENT: Agent(),
            EXACTLY: ExactAgent(),
            BARE: _bare(),
            SCRIPT: Script(),
        }
        self.rsyslog, why_not = find_rsyslog()
        if self.rsyslog is None:
            self.found.remarks.append(why_not)
        else:
            self._contenders[RSYSLOG] = self.rsyslog
        self._tailing = Tailing(broker, self._contenders, home, self.found.results, say)

    def files(self) -> None:
        self._tailing.prepared(RAW, self.settings.rounds, self.settings.raw_bytes)

    def parsed(self) -> None:
        self._tailing.prepared(PARSED, self.settings.rounds, self.settings.parsed_bytes)

    def growing(self) -> None:
        """At a rate that both can carry; then the agent alone at one that keeps it busy, for its memory."""
        settings = self.settings
        for name in (AGENT, EXACTLY, RSYSLOG):
            if name in self._contenders:
                self._say(f"a file that grows slowly by {name}")
                self._tailing.growing(name, 200, settings.growing_mb_per_s * MB, settings.growing_s)
        self._say(f"a file that grows fast, {settings.busy_s:.0f} s")
        course = self._tailing.growing(AGENT, 200, settings.busy_mb_per_s * MB, settings.busy_s)
        self.found.charts["memory"] = memory_chart(course, settings)

    def quiet(self) -> None:
        settings = self.settings
        both = {name: each for name, each in self._contenders.items() if name in (AGENT, RSYSLOG)}
        quiet_files(
            self._broker, both, self._tailing, self._home, self.found.results,
            settings.quiet_files, settings.idle_s, self._say,
        )  # fmt: skip

    def network(self) -> None:
        network(self._broker, self._tailing, self._home, self.found.results, self.settings.network_s, self._say)

    def burst(self) -> None:
        settings = self.settings
        plan = Plan(settings.sink_rate, settings.calm_s, settings.burst_s, drain_s_max=120)
        self.found.charts["buffer"] = Burst(self._broker, self._home, self.found.results, self._say).run(plan)

    def profile(self) -> None:
        self._say("profile of the agent")
        self.found.profiled = profile_lines(self._broker, self._tailing, self._home, self.settings.profile_bytes)


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
    if given.quick and given.keep:
        raise SystemExit("figures of a quick run are not kept among others")
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
    print(report.terminal(suite.found.results, TITLES))
    print("\n".join(suite.found.profiled))
    if given.keep:
        page.keep(suite.found)
    written = page.write(suite.found, asdict(settings), suite.rsyslog, publish=not given.no_page)
    print("\nwritten: " + ", ".join(str(path.relative_to(places.ROOT)) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
