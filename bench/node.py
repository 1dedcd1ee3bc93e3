"""The suite `node`: one Penstock node beside one Apache Kafka node, with a null broker as the bound.

`python -m bench.node` prints ratios of one run and writes docs/benchmarks/node.md; `--quick` is a look of two minutes.
Parts: throughput (raw loader and reader), perf-tool, latency, start, scale. Rounds go from broker to broker, so that a
change of the machine's mood falls on all of them.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import brokers, machine, perf_tool, places
from bench.brokers import APACHE, NULL, PENSTOCK_NODE, Running
from penstock.bench import raw, report
from penstock.bench.series import Results
from tests.compat import wire
from tests.compat.apache import jars
from tests.compat.node import Node
from tests.compat.processes import wait_for

PARTS = ("throughput", "perf-tool", "latency", "start", "scale")
LANES = 4
GB = 1e9


@dataclass(frozen=True)
class Settings:
    """How long and how much. The defaults are the headline run of under twenty minutes on two cores."""

    rounds: int = 3
    warmup_s: float = 60.0
    produce_s: float = 2.5
    round_bytes_max: int = 1_000_000_000
    fetch_s: float = 1.5
    batch_bytes: int = 16_000
    perf_records: int = 1_000_000
    latency_rate_per_s: float = 500.0
    latency_s: float = 8.0
    idle_s: float = 5.0
    partitions: int = 10_000
    pinned: bool = False

    def quick(self) -> Settings:
        return Settings(
            rounds=1,
            warmup_s=5,
            produce_s=1,
            round_bytes_max=200_000_000,
            fetch_s=1,
            batch_bytes=self.batch_bytes,
            perf_records=100_000,
            latency_rate_per_s=self.latency_rate_per_s,
            latency_s=2,
            idle_s=2,
            partitions=500,
            pinned=self.pinned,
        )


@dataclass(frozen=True)
class Shape:
    """One kind of produce load."""

    record_bytes: int
    acks: str
    codec: str

    @property
    def name(self) -> str:
        size = f"{self.record_bytes} B" if self.record_bytes < 1_000 else f"{self.record_bytes // 1_000} KB"
        return f"{size}, acks={self.acks}, {self.codec}"

    @property
    def acks_code(self) -> int:
        return -1 if self.acks == "all" else int(self.acks)


SHAPES = [Shape(size, acks, codec) for size in (100, 1_000) for acks in ("1", "all") for codec in ("none", "lz4")]


class Suite:
    """Measures the brokers of one run into `results`."""

    def __init__(self, names: Sequence[str], settings: Settings, say: Callable[[str], None]) -> None:
        self.names = list(names)
        self.settings = settings
        self.results = Results(ours=PENSTOCK_NODE, rival=APACHE)
        self._say = say
        self._topics = (f"bench-{number}" for number in itertools.count())

    # ------------------------------------------------------------ brokers that run side by side

    def side_by_side(self, parts: Sequence[str]) -> None:
        wanted = [part for part in parts if part in ("throughput", "perf-tool", "latency")]
        if not wanted:
            return
        with brokers.running(self.names) as started:
            self._warm_up(started)
            if self.settings.pinned:
                self._pin(started)
            for number in range(1, self.settings.rounds + 1):
                for part in wanted:
                    self._say(f"round {number} of {self.settings.rounds}: {part}")
                    {"throughput": self._throughput, "perf-tool": self._perf_tool, "latency": self._latency}[part](
                        started
                    )

    def _warm_up(self, started: Sequence[Running]) -> None:
        """Every path of the measurement runs, Kafka's longest: its compiler needs a minute of load to be done."""
        for broker in started:
            seconds = self.settings.warmup_s if broker.name == APACHE else min(self.settings.warmup_s, 3.0)
            self._say(f"warming up {brokers.TITLES[broker.name]} for {seconds:.0f} s")
            deadline = time.monotonic() + seconds
            for shape in itertools.cycle(SHAPES):
                self._produce_and_fetch(broker, shape, 1.0, 0.5)
                if time.monotonic() > deadline:
                    break

    def _pin(self, started: Sequence[Running]) -> None:
        cores = sorted(os.sched_getaffinity(0))
        for broker in started:
            broker.pin(cores[:1])
        os.sched_setaffinity(0, cores[1:2] or cores)

    def _throughput(self, started: Sequence[Running]) -> None:
        for shape in SHAPES:
            for broker in started:
                produced, produce_cpu_s, fetched, fetch_cpu_s = self._produce_and_fetch(
                    broker, shape, self.settings.produce_s, self.settings.fetch_s
                )
                add = self.results.add
                add("produce, raw loader", shape.name, "records/s", broker.name, produced.records_per_s)
                self._cost("produce, broker CPU", shape.name, broker.name, produce_cpu_s, produced)
                # Acknowledgements have no part in reading, and the null broker's canned reply has one shape.
                if shape.acks == "1" and (broker.name != NULL or shape == SHAPES[0]):
                    name = shape.name.replace(", acks=1", "") if broker.name != NULL else "canned, 1 KB, none"
                    add("fetch, raw reader", name, "MB/s", broker.name, fetched.megabytes_per_s)
                    self._cost("fetch, broker CPU", name, broker.name, fetch_cpu_s, fetched)
        for broker in started:
            self._small_requests(broker)

    def _cost(self, group: str, name: str, broker: str, cpu_s: float, load: raw.Load) -> None:
        per_gb = cpu_s / (load.wire_bytes / GB)
        self.results.add(group, name, "CPU-s/GB", broker, per_gb, higher_is_better=False)

    def _small_requests(self, broker: Running) -> None:
        """One record of 100 bytes a request: what a request costs, whatever is in it."""
        batch, records = raw.make_batch(100, 100, "none")
        with self._topic(broker) as topic:
            load, cpu_s = self._produce(broker, topic, batch, records, 1, self.settings.produce_s)
        add = self.results.add
        add("small requests", "one record of 100 B each", "requests/s", broker.name, load.requests_per_s)
        per_million = cpu_s / (load.requests / 1e6)
        add("small requests", "broker CPU", "CPU-s/M", broker.name, per_million, higher_is_better=False)

    def _produce_and_fetch(
        self, broker: Running, shape: Shape, produce_s: float, fetch_s: float
    ) -> tuple[raw.Load, float, raw.Load, float]:
        batch, records = raw.make_batch(shape.record_bytes, self.settings.batch_bytes, shape.codec)
        with self._topic(broker) as topic:
            produced, produce_cpu_s = self._produce(broker, topic, batch, records, shape.acks_code, produce_s)
            before = broker.usage().cpu_s
            fetched = raw.fetch_load(
                broker.bootstrap, topic, seconds=fetch_s, bytes_max=self.settings.round_bytes_max * 4
            )
            return produced, produce_cpu_s, fetched, broker.usage().cpu_s - before

    def _produce(
        self, broker: Running, topic: str, batch: bytes, records: int, acks: int, seconds: float
    ) -> tuple[raw.Load, float]:
        before = broker.usage().cpu_s
        load = raw.produce_load(
            broker.bootstrap,
            topic,
            batch,
            records,
            acks=acks,
            seconds=seconds,
            bytes_max=self.settings.round_bytes_max,
            lanes=LANES,
        )
        return load, broker.usage().cpu_s - before

    def _topic(self, broker: Running) -> _Topic:
        return _Topic(broker, next(self._topics))

    def _perf_tool(self, started: Sequence[Running]) -> None:
        for shape in SHAPES:
            records = self.settings.perf_records // (1 if shape.record_bytes == 100 else 4)
            for broker in started:
                with self._topic(broker) as topic:
                    rate = perf_tool.records_per_s(
                        broker.bootstrap,
                        topic,
                        record_bytes=shape.record_bytes,
                        records=records,
                        acks=shape.acks,
                        codec=shape.codec,
                        warmup_records=records // 4,
                    )
                self.results.add("produce, kafka-producer-perf-test", shape.name, "records/s", broker.name, rate)

    def _latency(self, started: Sequence[Running]) -> None:
        batch, _records = raw.make_batch(100, 1_000, "none")
        for broker in started:
            with self._topic(broker) as topic:
                measured = raw.latencies_ms(
                    broker.bootstrap,
                    topic,
                    batch,
                    acks=-1,
                    rate_per_s=self.settings.latency_rate_per_s,
                    seconds=self.settings.latency_s,
                    lanes=LANES,
                )
            for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
                value = raw.percentile(measured, share)
                group = f"produce latency at {self.settings.latency_rate_per_s:.0f} requests/s, acks=all"
                self.results.add(group, name, "ms", broker.name, value, higher_is_better=False)

    # ------------------------------------------------------------ one broker at a time

    def start(self) -> None:
        """From the command to the first acknowledged produce, and the memory of a node that has nothing to do."""
        batch, _records = raw.make_batch(100, 100, "none")
        kept = [name for name in self.names if name != NULL]
        for number in range(1, self.settings.rounds + 1):
            for name in kept:
                self._say(f"round {number} of {self.settings.rounds}: start of {brokers.TITLES[name]}")
                with brokers.scratch() as home:
                    node = brokers.make_node(name, home / name)
                    try:
                        self._start_once(Running(name, node), node, batch)
                    finally:
                        node.kill()

    def _start_once(self, broker: Running, node: Node, batch: bytes) -> None:
        before = time.perf_counter()
        node.format()
        formatting_s = time.perf_counter() - before
        first_s = brokers.seconds_to_first_ack(node, "first", batch)
        add = self.results.add
        add("start", "formatted, to the first acknowledged produce", "s", broker.name, first_s, higher_is_better=False)
        add("start", "the same with formatting", "s", broker.name, formatting_s + first_s, higher_is_better=False)
        time.sleep(self.settings.idle_s)
        usage = broker.usage()
        add("memory", "idle", "MB RSS", broker.name, usage.rss_bytes / 1e6, higher_is_better=False)
        time.sleep(self.settings.idle_s)
        idle_share = (broker.usage().cpu_s - usage.cpu_s) / self.settings.idle_s * 100
        add("memory", "idle CPU", "% of a core", broker.name, idle_share, higher_is_better=False)

    def scale(self) -> None:
        """A node with many partitions: making them, its memory, and its next start."""
        for name in self.names:
            if name != NULL:
                self._say(f"{self.settings.partitions} partitions on {brokers.TITLES[name]}")
                with brokers.scratch() as home:
                    node = brokers.make_node(name, home / name)
                    try:
                        self._scale_once(Running(name, node), node)
                    finally:
                        node.kill()

    def _scale_once(self, broker: Running, node: Node) -> None:
        node.start()
        each = min(1_000, self.settings.partitions)
        topics = [f"many-{number}" for number in range(self.settings.partitions // each)]
        group = f"{self.settings.partitions:,} partitions"
        add = self.results.add
        before = time.perf_counter()
        for topic in topics:
            wire.create_topic(node.bootstrap, topic, each)
        add(group, "creating them", "s", broker.name, time.perf_counter() - before, higher_is_better=False)
        time.sleep(self.settings.idle_s)
        add(group, "memory", "MB RSS", broker.name, broker.usage().rss_bytes / 1e6, higher_is_better=False)
        node.stop()
        before = time.perf_counter()
        node.launch()
        node.wait_until_serving(timeout_s=300)
        everything = self.settings.partitions
        wait_for("all leaders", lambda: led_partitions(node.bootstrap) == everything, timeout_s=300, pause_s=0.05)
        add(group, "start until all are led", "s", broker.name, time.perf_counter() - before, higher_is_better=False)
        add(
            group,
            "memory after the start",
            "MB RSS",
            broker.name,
            broker.usage().rss_bytes / 1e6,
            higher_is_better=False,
        )


def led_partitions(bootstrap: str) -> int:
    """How many partitions a broker leads; all or nothing, for a start is done when it is done for all."""
    if not wire.all_led(bootstrap):
        return 0
    with wire.connect(bootstrap) as connection:
        return len(wire.partition_states(connection))


class _Topic:
    """A topic for one measurement, dropped afterwards so that the disk does not fill."""

    def __init__(self, broker: Running, name: str) -> None:
        self._broker = broker
        self._name = name

    def __enter__(self) -> str:
        self._broker.new_topic(self._name, LANES)
        return self._name

    def __exit__(self, *_: object) -> None:
        self._broker.drop_topic(self._name)


INTRODUCTION = (
    "All figures are of one run. A ratio above 1 means that Penstock is ahead, whatever the figure. The null broker",
    "answers and discards: it is the bound of client, loopback and this machine, not a competitor.",
    "",
    "- Both brokers run as shipped: Kafka with its `server.properties` for a single node and the JVM options of its",
    "  start script (1 GB heap, G1), warmed up under load first; Penstock with the same properties.",
    "- Nothing is fsynced before an acknowledgement on either side; that is Kafka's default, and `acks=all` waits for",
    "  all in-sync replicas, of which there is one. The metadata log is fsynced by both. A round fits the page cache.",
    "- The raw loader sends requests that were encoded before, over four connections with five in flight each; the raw",
    "  reader fetches 1 MB at a time over one connection. Client and broker share the cores.",
    "- Kafka decompresses a compressed batch to check every record; Penstock checks the batch's header and checksum.",
    "  Uncompressed batches are walked record by record by both.",
    "- Latency is open loop: a request counts from the moment when it was due, so a stall is charged to every request",
    "  that it held up.",
)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.node", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round; figures only to see that it works")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 3)")
    parser.add_argument("--warmup-s", type=float, help="load before the first figure of Kafka (default 60)")
    parser.add_argument("--partitions", type=int, help="partitions of the scale part (default 10000)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--brokers", help="which of apache, penstock, null (default: all that are there)")
    parser.add_argument("--pinned", action="store_true", help="brokers on one core, the loader on another")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def settings_of(given: argparse.Namespace) -> Settings:
    chosen = Settings(pinned=given.pinned)
    if given.quick:
        chosen = chosen.quick()
    changes = {name: getattr(given, name) for name in ("rounds", "warmup_s", "partitions") if getattr(given, name)}
    return Settings(**{**asdict(chosen), **changes})


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    parts = given.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    settings = settings_of(given)
    names, remarks = brokers.available_brokers()
    if given.brokers:
        names = [name for name in names if name in given.brokers.split(",")]
    if APACHE not in names:
        # The perf tool comes with Kafka's jars.
        parts = [part for part in parts if part != "perf-tool" or jars.available()]
    for remark in remarks:
        print(remark)
    brokers.allow_many_files()
    began = time.monotonic()
    suite = Suite(names, settings, lambda text: print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True))
    suite.side_by_side(parts)
    if "start" in parts:
        suite.start()
    if "scale" in parts:
        suite.scale()
    print(report.terminal(suite.results, brokers.TITLES))
    page = report.Page(
        suite="node",
        title="One node beside Apache Kafka",
        command="make bench SUITE=node",
        introduction=INTRODUCTION,
        machine=machine.describe(names),
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=remarks,
        titles=brokers.TITLES,
    )
    written = places.write(page, suite.results, publish=not given.no_page)
    print("\nwritten: " + ", ".join(str(path.relative_to(Path.cwd())) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
