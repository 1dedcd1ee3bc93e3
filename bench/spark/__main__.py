"""`python -m bench.spark` (make bench SUITE=spark): figures of one run, written to docs/benchmarks/spark.md.

Parts: source (ours beside Spark's own connector), lake (topic to Delta), topics (topic to topic, in transactions and
not, beside the connector), keyed (changes into a table by key, and that table with the end of its log), freshness
(produce to visible), union (the table and the end of its log), profile. `--quick` is a look of some minutes whose
figures mean nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from bench import brokers, machine, places
from bench.brokers import PENSTOCK_NODE, Running
from bench.spark.changes import CHANGE_SCHEMA, send_changes
from bench.spark.topic_to_topic import RIVAL, WAYS, note_round
from bench.spark.topics import JSON_SCHEMA, PARTITIONS, Filled, fill, json_value, text_value
from penstock.bench import report
from penstock.bench.series import Results
from tests.compat.spark import jars

PARTS = ("source", "lake", "topics", "keyed", "freshness", "union", "profile")
TITLES = {PENSTOCK_NODE: "Penstock", RIVAL: "Spark's connector"}
FORMATS = {PENSTOCK_NODE: "penstock", RIVAL: "kafka"}
SIZES = {"100 B": 100, "1 KB": 1_000}
SINKS = ("noop", "parquet")
MIB = 1 << 20
TOPIC_BATCHES = 20


@dataclass(frozen=True)
class Settings:
    """How long and how much. The defaults stay under fifteen minutes on two cores."""

    rounds: int = 3
    topic_bytes: int = 300_000_000
    lake_bytes: int = 200_000_000
    records_per_s: int = 50_000
    fresh_s: float = 40.0
    fresh_warm_s: float = 20.0
    union_reads: int = 60
    union_records_per_s: int = 5_000
    keyed_rows: tuple[int, ...] = (500_000, 1_000_000, 2_000_000)
    keyed_changes: int = 20_000
    keyed_reads: int = 40

    def quick(self) -> Settings:
        return Settings(
            rounds=1, topic_bytes=10_000_000, lake_bytes=10_000_000, fresh_s=8.0, fresh_warm_s=6.0, union_reads=5,
            keyed_rows=(20_000, 40_000), keyed_changes=2_000, keyed_reads=3,
        )  # fmt: skip


class Process:
    """The measured process, asked line by line."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self._read()

    def ask(self, do: str, **words: Any) -> dict[str, Any]:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"do": do, **words}) + "\n")
        self._child.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError("the measured process ended; what it said is above")


@contextmanager
def measured() -> Iterator[Process]:
    command = [sys.executable, "-m", "bench.spark.measured"]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=places.ROOT, start_new_session=True
    )
    try:
        yield Process(child)
    finally:
        assert child.stdin is not None
        child.stdin.close()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class Suite:
    """Measures into `results`; each part may be run alone."""

    def __init__(self, settings: Settings, broker: Running, process: Process, home: Path, say: Callable[[str], None]):
        self.settings, self.results, self.profiled = settings, Results(ours=PENSTOCK_NODE, rival=RIVAL), list[str]()
        self._broker, self._process, self._home, self._say = broker, process, str(home), say
        self._filled: dict[str, Filled] = {}

    def source(self) -> None:
        """One round that counts for nothing, so that both are compiled; then rounds in turns."""
        for number in range(self.settings.rounds + 1):
            for (size, sink), contender in itertools.product(itertools.product(SIZES, SINKS), FORMATS):
                self._say(f"round {number} of {self.settings.rounds}: {size} to {sink} by {TITLES[contender]}")
                filled = self._topic(size)
                found = self._process.ask(
                    "read", by=FORMATS[contender], to=sink, home=self._home, options=self._source(filled)
                )
                if number:
                    self._note_read(contender, f"{size} to {sink}", filled.records, found)

    def _note_read(self, contender: str, name: str, rows: int, found: Mapping[str, float]) -> None:
        self.results.add("rows a second", name, "rows/s", contender, rows / found["seconds"])
        target = "rows per CPU-second (target: 2×)"
        self.results.add(target, name, "rows/CPU-s", contender, rows / found["cpu_s"])
        self.results.add(
            "share of the JVM in the CPU time", name, "%", contender, 100 * found["jvm_s"] / found["cpu_s"]
        )

    def lake(self) -> None:
        kinds = {
            "JSON (target: 35)": ("JSON", {"value.format": "json", "value.schema": JSON_SCHEMA}),
            "raw, 1 KB": ("1 KB", {}),
        }
        for number, (name, (topic, options)) in itertools.product(range(self.settings.rounds + 1), kinds.items()):
            self._say(f"round {number} of {self.settings.rounds}: topic to Delta, {name}")
            filled = self._topic(topic)
            source = {**self._source(filled), "startingOffsets": "earliest", **options}
            found = self._process.ask("lake", home=self._home, source=source, sink={})
            assert found["rows"] == filled.records, f"{found['rows']} rows of {filled.records} records"
            if number:
                mib = filled.value_bytes / MIB
                self._ours("topic to Delta, a core", name, "MiB/CPU-s", mib / found["cpu_s"])
                self._ours("topic to Delta, two cores and the broker's share", name, "MiB/s", mib / found["seconds"])

    def topics(self) -> None:
        """From topic to topic in some twenty batches: in transactions, at least once, and by Spark's connector."""
        filled = self._topic("1 KB")
        limit = str(max(filled.records // TOPIC_BATCHES, 1))
        source = {**self._source(filled), "startingOffsets": "earliest", "maxOffsetsPerTrigger": limit}
        for number in range(self.settings.rounds + 1):
            found = {}
            for way in WAYS:
                self._say(f"round {number} of {self.settings.rounds}: topic to topic, {way.name} by {way.by}")
                out = f"out-{number}-{way.topic}"
                self._broker.new_topic(out, PARTITIONS)
                sink = {"kafka.bootstrap.servers": self._broker.bootstrap, "topic": out, **way.sink}
                found[way] = self._process.ask("topics", by=way.by, home=self._home, source=source, sink=sink)
            if number:
                note_round(self.results, filled.records, found)

    def keyed(self) -> None:
        """So many changes into tables of several sizes: what does a merge cost as the table grows?"""
        settings = self.settings
        for table_format in ("delta", "iceberg"):
            topic = f"keyed-{table_format}"
            self._broker.new_topic(topic, PARTITIONS)
            source = {
                **self._source(Filled(topic, 0, 0)), "startingOffsets": "earliest", "value.format": "json",
                "value.schema": CHANGE_SCHEMA, "metadataColumns": "_topic,_partition,_offset",
                "maxOffsetsPerTrigger": "1000000",
            }  # fmt: skip
            filled = 0
            for rows in settings.keyed_rows:
                self._say(f"{rows:,} rows into {table_format} by key")
                send_changes(self._broker.bootstrap, topic, range(filled, rows), 0)
                filled = rows
                self._process.ask("keyed", home=self._home, source=source, table_format=table_format)
                name = f"{settings.keyed_changes:,} changes into {rows:,} rows, {table_format}"
                for number in range(settings.rounds):
                    self._say(f"round {number + 1} of {settings.rounds}: {name}")
                    changed = random.Random(number).sample(range(rows), settings.keyed_changes)
                    send_changes(self._broker.bootstrap, topic, changed, number + 1)
                    found = self._process.ask("keyed", home=self._home, source=source, table_format=table_format)
                    assert found["rows"] == settings.keyed_changes, "a batch of these changes alone"
                    self._ours("merge by key (target: 5 s)", name, "s", found["seconds"], lower=True)
                    self._ours("memory of the largest task (target: 512)", name, "MiB", found["peak_mib"], lower=True)
            self._keyed_union(topic, table_format, filled)

    def _keyed_union(self, topic: str, table_format: str, rows: int) -> None:
        """Of the largest table: one change, and the question for its row."""
        self._say(f"{rows:,} rows of {table_format} by key, with the end of their log")
        found = self._process.ask(
            "keyed_union", home=self._home, bootstrap=self._broker.bootstrap, topic=topic, table_format=table_format,
            times=self.settings.keyed_reads,
        )  # fmt: skip
        for share in ("p50", "p99"):
            name = f"one change to its answer, {rows:,} rows, {table_format}, {share} (target: below 1,000)"
            self._ours("union read by key", name, "ms", found["ages_ms"][share], lower=True)

    def freshness(self) -> None:
        settings = self.settings
        self._say(f"freshness at {settings.records_per_s:,} records/s")
        self._broker.new_topic("fresh", PARTITIONS)
        seconds = settings.fresh_warm_s + settings.fresh_s
        with self._pace("fresh", settings.records_per_s, seconds):
            found = self._process.ask(
                "freshness", home=self._home, source=self._source(Filled("fresh", 0, 0)), seconds=settings.fresh_s,
                warm_s=settings.fresh_warm_s, every="0 seconds",
            )  # fmt: skip
        name = f"at {settings.records_per_s:,} records/s"
        for share, target in (("p50", ""), ("p99", " (target: 2,000)")):
            age_ms = found["ages_ms"][share]
            self._ours("produce to visible in Delta", f"{name}, {share}{target}", "ms", age_ms, lower=True)
        self._ours(
            "produce to visible in Delta",
            f"{name}, cores' worth",
            "CPU-s/s",
            found["cpu_s"] / found["seconds"],
            lower=True,
        )

    def union(self) -> None:
        settings = self.settings
        self._say("union reads")
        self._broker.new_topic("union", PARTITIONS)
        source = {**self._source(Filled("union", 0, 0)), "startingOffsets": "earliest"}
        with self._pace("union", settings.union_records_per_s, 600):
            found = self._process.ask(
                "union", home=self._home, source=source,
                bootstrap=self._broker.bootstrap, topic="union", times=settings.union_reads,
            )  # fmt: skip
        for share in ("p50", "p99"):
            name = f"produce to answer, {share} (target: below 1,000)"
            self._ours("union read", name, "ms", found["ages_ms"][share], lower=True)

    def profile(self) -> None:
        kinds = {
            "100 B": [],
            "1 KB": [],
            "JSON": ["value.format=json", f"value.schema={JSON_SCHEMA}"],
        }
        for size, options in kinds.items():
            self._say(f"profile of a task, {size}")
            command = [sys.executable, "-m", "bench.spark.profile", self._broker.bootstrap, self._topic(size).topic]
            done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=places.ROOT, timeout=120)
            if done.returncode != 0:
                raise RuntimeError(f"the profile failed:\n{done.stdout}\n{done.stderr}")
            parts = [json.loads(line) for line in done.stdout.splitlines()]
            words = ", ".join(f"{share:.0%} `{name}`" for name, share in parts)
            self.profiled.append(f"- A task's own time, {size}: {words}.")

    def _topic(self, kind: str) -> Filled:
        """Filled when it is first asked for."""
        if kind not in self._filled:
            value = json_value if kind == "JSON" else text_value(SIZES[kind])
            size = self.settings.lake_bytes if kind == "JSON" else self.settings.topic_bytes
            self._filled[kind] = fill(self._broker.bootstrap, kind.replace(" ", "-"), value, size)
        return self._filled[kind]

    def _source(self, filled: Filled) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._broker.bootstrap, "subscribe": filled.topic}

    def _ours(self, group: str, name: str, unit: str, value: float, *, lower: bool = False) -> None:
        self.results.add(group, name, unit, PENSTOCK_NODE, value, higher_is_better=not lower)

    @contextmanager
    def _pace(self, topic: str, rate: int, seconds: float) -> Iterator[None]:
        command = [sys.executable, "-m", "bench.spark.pace", self._broker.bootstrap, topic, str(rate), str(seconds)]
        child = subprocess.Popen(command, cwd=places.ROOT, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            child.kill()
            child.wait()


INTRODUCTION = (
    "All figures are of one run on one machine: a Penstock node, a Spark session of two cores with both formats in the",
    "same JVM, and, where there is one, a producer, all sharing the machine. A ratio above 1 means that Penstock's",
    "source is ahead of the Kafka connector that Spark brings as a jar.",
    "",
    "- CPU seconds are those of the whole family of the driver: JVM, driver's Python, Python workers; not those of the",
    "  node and of the producer.",
    "- Each read is of a whole topic of four partitions, both with their defaults; one round before the first counts",
    "  for nothing, then contenders take turns.",
    "- Topic to Delta is one stream until the topic is drained, with its start, its commits and the reading of Spark's",
    "  log; values' bytes are counted. A core is a CPU second of the family.",
    "- Topic to topic is one stream of some twenty batches until the topic is drained, with its start and its stop. In",
    "  transactions means exactly.once; the broker's own work for them is not in the CPU seconds, and is in the time.",
    "  Spark's connector writes at least once only: that figure stands beside both of ours.",
    "- Merge by key: one batch of changes of random rows into a table of sixteen buckets, from planning to commit; the",
    "  largest task is the Python worker that had most memory meanwhile.",
    "- Produce to visible: the age of every row, by its record's timestamp, when the file of its commit was there in",
    "  Delta's log; batches follow one another without a pause.",
    "- Union read: from handing a record to the producer until a query over the table and the end of the log, which is",
    "  asked as soon as the record is acknowledged, has answered with it. By key it is one change of a row of the",
    "  largest table, asked for by its key.",
    "- What exactly once costs from the file on is on the [page of agents](agent.md).",
)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round; figures only to see that it works")
    parser.add_argument("--rounds", type=int, help="rounds (default 3)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
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

    with brokers.running([PENSTOCK_NODE]) as (broker,), brokers.scratch() as home, measured() as process:
        suite = Suite(settings, broker, process, home, say)
        for part in PARTS:
            if part in parts:
                getattr(suite, part)()
    print(report.terminal(suite.results, TITLES))
    print("\n".join(suite.profiled))
    page = report.Page(
        suite="spark",
        title="Spark: sources, tables and how fresh they are",
        command="make bench SUITE=spark",
        introduction=[*INTRODUCTION, *suite.profiled],
        machine=facts(),
        parameters={name.replace("_", " "): value for name, value in asdict(settings).items()},
        remarks=[],
        titles=TITLES,
    )
    written = places.write(page, suite.results, publish=not given.no_page)
    print("\nwritten: " + ", ".join(str(path.relative_to(Path.cwd())) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


def facts() -> dict[str, str]:
    found = machine.describe([PENSTOCK_NODE])
    found.update({name: metadata.version(name) for name in ("pyspark", "pyarrow", "deltalake")})
    found["Spark's Kafka connector"] = jars.VERSION
    return found


if __name__ == "__main__":
    main()
