"""The suite `cluster`: three Penstock nodes beside three Apache Kafka nodes, with the same timeouts.

`python -m bench.cluster` prints ratios of one run and writes docs/benchmarks/cluster.md; `--quick` is a look of a few
minutes. Parts: throughput, perf-tool, latency, idle, failover, scale, profile. Both clusters run at once and are loaded
in turn; only `scale` and `profile` have the machine for themselves.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import brokers, cluster_runs, machine, perf_tool, places
from bench.brokers import APACHE, EARLIER, NULL, PENSTOCK_NODE
from bench.cluster_profile import profile_lines
from bench.cluster_runs import Contender
from bench.earlier import EarlierCluster
from penstock.bench import raw, report
from penstock.bench.series import Results
from tests.compat.apache import jars
from tests.compat.cluster import ApacheCluster, Cluster, PenstockCluster, view

PARTS = ("throughput", "perf-tool", "latency", "idle", "failover", "scale", "profile")
LANES = 6
GB = 1e9
# The start script's options with a heap that three nodes can share with everybody else.
JVM = (
    "-Xmx512m", "-Xms512m", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-Djava.awt.headless=true",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How long and how much. The defaults are a run of under twenty minutes on two cores."""

    rounds: int = 3
    warmup_s: float = 60.0
    produce_s: float = 3.0
    round_bytes_max: int = 400_000_000
    batch_bytes: int = 16_000
    perf_records: int = 300_000
    latency_rate_per_s: float = 200.0
    latency_s: float = 8.0
    idle_s: float = 15.0
    failovers: int = 20
    partitions: int = 5_000
    profile_s: float = 10.0

    def quick(self) -> Settings:
        return Settings(
            rounds=1,
            warmup_s=3,
            produce_s=1,
            round_bytes_max=50_000_000,
            perf_records=20_000,
            latency_s=2,
            idle_s=3,
            failovers=2,
            partitions=300,
            profile_s=3,
        )


@dataclass(frozen=True)
class Shape:
    record_bytes: int
    codec: str

    @property
    def name(self) -> str:
        size = f"{self.record_bytes} B" if self.record_bytes < 1_000 else f"{self.record_bytes // 1_000} KB"
        return f"{size}, {self.codec}"


SHAPES = [Shape(100, "none"), Shape(1_000, "none"), Shape(1_000, "lz4")]
ONE_LANE = Shape(1_000, "none")


def make_cluster(name: str, home: Path) -> Cluster:
    if name == APACHE:
        cluster = ApacheCluster(home, 3)
        cluster.jvm = JVM
        return cluster
    return EarlierCluster(home, 3) if name == EARLIER else PenstockCluster(home, 3)


class Suite:
    """Measures the clusters of one run into `results`."""

    def __init__(self, names: Sequence[str], settings: Settings, say: Callable[[str], None]) -> None:
        self.names = list(names)
        self.settings = settings
        self.results = Results(ours=PENSTOCK_NODE, rival=APACHE)
        self._say = say
        self._topics = (f"bench-{number}" for number in itertools.count())

    # -- clusters that run side by side

    def side_by_side(self, parts: Sequence[str]) -> None:
        by_round = {"throughput": self._throughput, "perf-tool": self._perf_tool, "latency": self._latency}
        wanted = [part for part in by_round if part in parts]
        if not wanted and not {"idle", "failover"} & set(parts):
            return
        with ExitStack() as stack:
            home = stack.enter_context(brokers.scratch())
            started = [Contender(name, stack.enter_context(make_cluster(name, home / name))) for name in self.names]
            if "idle" in parts:
                self._idle(started)
            if wanted:
                self._warm_up(started)
            for number in range(1, self.settings.rounds + 1):
                for part in wanted:
                    self._say(f"round {number} of {self.settings.rounds}: {part}")
                    by_round[part](started)
            if "failover" in parts:
                self._failover(started)

    @contextmanager
    def _topic(self, contender: Contender, partitions: int = LANES) -> Iterator[str]:
        topic = next(self._topics)
        contender.new_topic(topic, partitions)
        try:
            yield topic
        finally:
            contender.drop_topic(topic)

    def _warm_up(self, started: Sequence[Contender]) -> None:
        for contender in started:
            seconds = self.settings.warmup_s if contender.name == APACHE else min(self.settings.warmup_s, 3.0)
            self._say(f"warming up {contender.cluster.title} for {seconds:.0f} s")
            deadline = time.monotonic() + seconds
            for shape in itertools.cycle(SHAPES):
                self._produce(contender, shape, min(5.0, seconds), lanes=LANES)
                self._produce(contender, ONE_LANE, min(2.0, seconds), lanes=1)
                if time.monotonic() > deadline:
                    break

    def _produce(
        self, contender: Contender, shape: Shape, seconds: float, lanes: int = LANES
    ) -> tuple[raw.Load, float]:
        """A load on the leaders of so many partitions, and the CPU time that all nodes took for it."""
        batch, records = raw.make_batch(shape.record_bytes, self.settings.batch_bytes, shape.codec)
        with self._topic(contender, lanes) as topic:
            leaders = contender.leaders(topic, lanes)
            before = contender.usage().cpu_s
            load = raw.produce_load(
                leaders, topic, batch, records,
                acks=-1, seconds=seconds, bytes_max=self.settings.round_bytes_max, lanes=lanes,
            )  # fmt: skip
            return load, contender.usage().cpu_s - before

    def _throughput(self, started: Sequence[Contender]) -> None:
        for shape, contender in itertools.product(SHAPES, started):
            load, cpu_s = self._produce(contender, shape, self.settings.produce_s)
            add = self.results.add
            add(
                "produce, acks=all, 3 replicas, raw loader", shape.name, "records/s", contender.name, load.records_per_s
            )
            per_gb = cpu_s / (load.wire_bytes / GB)
            group = "CPU of all three brokers for a GB produced, which is written three times"
            add(group, shape.name, "CPU-s/GB", contender.name, per_gb, higher_is_better=False)
        for contender in started:
            load, cpu_s = self._produce(contender, ONE_LANE, self.settings.produce_s, lanes=1)
            group = "one connection to one partition with five requests in flight, acks=all, 3 replicas, raw loader"
            self.results.add(group, ONE_LANE.name, "records/s", contender.name, load.records_per_s)
            per_request_us = cpu_s / load.requests * 1e6
            name = f"CPU of all three brokers for a request, {ONE_LANE.name}"
            self.results.add(group, name, "µs", contender.name, per_request_us, higher_is_better=False)

    def _perf_tool(self, started: Sequence[Contender]) -> None:
        for shape, contender in itertools.product(SHAPES, started):
            records = self.settings.perf_records // (1 if shape.record_bytes == 100 else 4)
            with self._topic(contender) as topic:
                rate = perf_tool.records_per_s(
                    contender.cluster.bootstrap, topic, record_bytes=shape.record_bytes, records=records,
                    acks="all", codec=shape.codec, warmup_records=records // 4,
                )  # fmt: skip
            group = "produce, acks=all, 3 replicas, kafka-producer-perf-test"
            self.results.add(group, shape.name, "records/s", contender.name, rate)

    def _latency(self, started: Sequence[Contender]) -> None:
        batch, _records = raw.make_batch(100, 1_000, "none")
        rate = self.settings.latency_rate_per_s
        for contender in started:
            with self._topic(contender) as topic:
                measured = raw.latencies_ms(
                    contender.leaders(topic, LANES), topic, batch,
                    acks=-1, rate_per_s=rate, seconds=self.settings.latency_s, lanes=LANES,
                )  # fmt: skip
            group = f"produce latency at {rate:.0f} requests/s, acks=all, 3 replicas"
            for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
                value = raw.percentile(measured, share)
                self.results.add(group, name, "ms", contender.name, value, higher_is_better=False)

    def _idle(self, started: Sequence[Contender]) -> None:
        """Three nodes with no partition but their own, doing nothing but staying together."""
        self._say("idle clusters")
        time.sleep(self.settings.idle_s)
        before = {contender.name: contender.usage() for contender in started}
        time.sleep(self.settings.idle_s)
        for contender in started:
            usage = contender.usage()
            share = (usage.cpu_s - before[contender.name].cpu_s) / self.settings.idle_s * 100
            add = self.results.add
            add("idle, all three nodes", "memory", "MB RSS", contender.name, usage.rss_bytes / 1e6,
                higher_is_better=False)  # fmt: skip
            add("idle, all three nodes", "CPU", "% of a core", contender.name, share, higher_is_better=False)

    def _failover(self, started: Sequence[Contender]) -> None:
        batch, _records = raw.make_batch(100, 100, "none")
        for contender in started:
            contender.new_topic("failing-over", 1)
        for number, contender in itertools.product(range(self.settings.failovers), started):
            self._say(f"failover {number + 1} of {self.settings.failovers}: {contender.cluster.title}")
            took_s = cluster_runs.seconds_to_fail_over(contender.cluster, "failing-over", batch)
            name = "kill -9 of a leader to the first acknowledged write (median, best to worst)"
            self.results.add("failover", name, "s", contender.name, took_s, higher_is_better=False)

    # -- one cluster after the other

    def scale(self) -> None:
        """Many partitions: making them, what they weigh, and a node that leads a third of them dying."""
        for name in self.names:
            with brokers.scratch() as home, make_cluster(name, home / name) as cluster:
                self._say(f"{self.settings.partitions} partitions with 3 replicas on {cluster.title}")
                self._scale_once(Contender(name, cluster))

    def _scale_once(self, contender: Contender) -> None:
        cluster, count = contender.cluster, self.settings.partitions
        group = f"{count:,} partitions with 3 replicas on 3 nodes"

        def add(name: str, unit: str, value: float) -> None:
            self.results.add(group, name, unit, contender.name, value, higher_is_better=False)

        began = time.perf_counter()
        cluster_runs.create_many(cluster, count, min(1_000, count))
        add("creating them, until all replicas are in sync", "s", time.perf_counter() - began)
        add("memory of all nodes", "MB RSS", contender.usage().rss_bytes / 1e6)
        add("a metadata reply about all", "KB", view(cluster.brokers[0].address, timeout_s=30).reply_bytes / 1e3)
        add("the metadata log of a node", "KB", cluster_runs.metadata_log_bytes(cluster) / 1e3)
        time.sleep(self.settings.idle_s)
        before = contender.usage().cpu_s
        time.sleep(self.settings.idle_s)
        add("idle CPU of all nodes", "% of a core", (contender.usage().cpu_s - before) / self.settings.idle_s * 100)
        dead = 3
        began = time.perf_counter()
        cluster.nodes[dead].kill()
        cluster_runs.wait_until(cluster, "other leaders", lambda each: each.leader not in (-1, dead))
        add("kill -9 of a node, until all are led by others", "s", time.perf_counter() - began)
        began = time.perf_counter()
        cluster.start(dead)
        cluster.wait_until_whole(timeout_s=300)
        add("its start, until all replicas are in sync", "s", time.perf_counter() - began)


INTRODUCTION = (
    "All figures are of one run. A ratio above 1 means that Penstock is ahead, whatever the figure.",
    "",
    "- Three nodes each, all of them broker and controller, on one machine and with the same settings: sessions of",
    "  two seconds, elections after half a second, `min.insync.replicas=2`, three replicas of everything. Kafka has",
    "  the JVM options of its start script with 512 MB of heap a node, and is warmed up under load first.",
    "- Six nodes, loader and tools share the cores, so throughput has a ceiling that all of them set together. Both",
    "  clusters run at once and are loaded in turn; the CPU time is that of a cluster's own processes.",
    "- Nothing is fsynced before an acknowledgement on either side; `acks=all` waits for all replicas in sync.",
    "- The raw loader sends requests that were encoded before, over a connection to the leader of each of six",
    "  partitions, or of a single one, with five in flight. Latency is open loop: a request counts from the moment",
    "  when it was due.",
    "- Failover is measured by a prober that asks the other brokers for the leader every few milliseconds, so that no",
    "  client's patience is in the figure.",
)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round; figures only to see that it works")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 3)")
    parser.add_argument("--failovers", type=int, help="how often a leader is killed (default 20)")
    parser.add_argument("--partitions", type=int, help="partitions of the scale part (default 5000)")
    parser.add_argument("--warmup-s", type=float, help="load before the first figure of Kafka (default 60)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--brokers", help="which of apache, penstock (default: all that are there)")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def settings_of(given: argparse.Namespace) -> Settings:
    chosen = Settings().quick() if given.quick else Settings()
    names = ("rounds", "failovers", "partitions", "warmup_s")
    return replace(chosen, **{name: getattr(given, name) for name in names if getattr(given, name) is not None})


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    parts = given.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    settings = settings_of(given)
    names, remarks = brokers.available_brokers()
    names = [name for name in names if name != NULL and (not given.brokers or name in given.brokers.split(","))]
    if not jars.available():
        parts = [part for part in parts if part != "perf-tool"]
    for remark in remarks:
        print(remark)
    brokers.allow_many_files()
    began = time.monotonic()
    suite = Suite(names, settings, lambda text: print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True))
    suite.side_by_side(parts)
    if "scale" in parts:
        suite.scale()
    profile: list[str] = []
    if "profile" in parts and PENSTOCK_NODE in names:
        with brokers.scratch() as home:
            profile = profile_lines(home, settings.profile_s)
    print(report.terminal(suite.results, brokers.TITLES))
    page = report.Page(
        suite="cluster",
        title="Three nodes beside three of Apache Kafka",
        command="make bench SUITE=cluster",
        introduction=INTRODUCTION,
        machine=machine.describe(names),
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=remarks,
        titles=brokers.TITLES,
    )
    written = places.write(page, suite.results, publish=not given.no_page)
    if profile:
        append_profile(written, profile)
    print("\nwritten: " + ", ".join(str(path.relative_to(Path.cwd())) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


def append_profile(written: Sequence[Path], profile: Sequence[str]) -> None:
    """Where a broker's time goes, at the end of the page; on the terminal when there is no page."""
    section = [
        "", "## Where the time goes", "",
        "One of our three nodes under Python's profiler, which makes short functions look dearer than they are, while",
        "records of 1 KB are produced with acks=all to six partitions: it leads two and follows four.", "",
        *profile,
    ]  # fmt: skip
    print("\n".join(section))
    for path in written:
        if path.suffix == ".md":
            path.write_text(path.read_text() + "\n".join(section) + "\n")


if __name__ == "__main__":
    main()
