"""What a produce and a fetch cost a broker, by raw loader: pinned to a core beside the loader's, and unpinned.

The loader's requests are encoded once and acknowledged by all in-sync replicas, of which there is one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from bench.brokers import APACHE, NULL, Running
from bench.headline.calm import OF_COST
from bench.headline.stage import LANES, Stage, pinned
from penstock.bench import raw

REGIMES = ("pinned", "unpinned")
GB = 1e9
# A request of many partitions is sent by so many connections, each with partitions of its own.
MANY, MANY_LANES = 100, 2
FETCH = "1 MB at a time, 1 KB records"


@dataclass(frozen=True)
class Case:
    """One kind of produce load."""

    name: str
    record_bytes: int
    batch_bytes: int
    codec: str = "none"
    partitions_a_request: int = 1

    @property
    def lanes(self) -> int:
        return LANES if self.partitions_a_request == 1 else MANY_LANES


CASES = (
    Case("128 KB batches, 1 KB records", 1_000, 128_000),
    Case("128 KB batches, 100 B records", 100, 128_000),
    Case("16 KB batches, 1 KB records", 1_000, 16_000),
    Case("16 KB batches, 100 B records", 100, 16_000),
    Case("128 KB batches, 1 KB records, lz4 (Kafka decompresses)", 1_000, 128_000, "lz4"),
    Case("128 KB batches, 1 KB records, zstd (Kafka decompresses)", 1_000, 128_000, "zstd"),
    Case("single records of 100 B", 100, 100),
    Case(f"{MANY} partitions x 1 KB a request", 1_000, 1_000, "none", MANY),
)


def cpu_group(regime: str) -> str:
    return f"produce, {regime}: broker CPU"


def rate_group(regime: str) -> str:
    return f"produce, {regime}: throughput"


def fetch_group(regime: str) -> str:
    return f"fetch, {regime}"


class Production:
    """Measures on brokers that run; topics that are costly to make are made once."""

    def __init__(self, stage: Stage, started: Sequence[Running]) -> None:
        self._stage = stage
        self._started = started
        self._batches = {case: raw.make_batch(case.record_bytes, case.batch_bytes, case.codec) for case in CASES}
        self._many = stage.topic_name()
        self._filled = stage.topic_name()

    def prepare(self) -> None:
        """Topics of many partitions, and one to read from that lies in the page cache."""
        batch, records = raw.make_batch(1_000, 16_000, "none")
        for broker in self._started:
            broker.new_topic(self._many, MANY * MANY_LANES)
            broker.new_topic(self._filled, 1)
            raw.produce_load(
                broker.bootstrap, self._filled, batch, records,
                acks=-1, seconds=60, bytes_max=self._stage.settings.filled_bytes, lanes=1,
            )  # fmt: skip

    def warm_up(self) -> None:
        """Every path of the measurement runs, Kafka's longest: its compiler needs a minute of load to be done."""
        whole_s = self._stage.settings.warmup_s
        for broker in self._started:
            seconds = whole_s if broker.name == APACHE else min(whole_s, 3.0)
            began = time.monotonic()
            for number, case in enumerate(itertools.cycle(CASES)):
                gone_s = time.monotonic() - began
                if gone_s >= seconds:
                    break
                if number % len(CASES) == 0:
                    title = self._stage.title(broker.name)
                    self._stage.progress.step(round(gone_s), round(whole_s) + 6, f"{title} under mixed load")
                self._produced(broker, case, min(1.0, seconds / 3))
                self._fetched(broker, min(0.5, seconds / 3))

    def measure(self) -> None:
        """Nothing is warm for one regime alone: rounds alternate between them."""
        rounds = self._stage.settings.rounds
        self._stage.remarks.append(
            "No sample of processor time began before the files of topics that earlier ones dropped were gone. Each "
            "found memory that had been written to just before: pages that a virtual machine has given back to its "
            "host cost the first who writes to them several times as much."
        )
        for number, regime in itertools.product(range(rounds), REGIMES):
            self._stage.progress.step(
                number * 2 + REGIMES.index(regime), rounds * 2, f"round {number + 1} of {rounds}, {regime}"
            )
            with pinned(self._started) if regime == "pinned" else nullcontext():
                self._round(regime)

    def _round(self, regime: str) -> None:
        stage = self._stage
        for case, broker in itertools.product(CASES, self._started):
            load, cpu_s = stage.calm.sampled(partial(self._produced, broker, case, stage.settings.sample_s), OF_COST)
            stage.cost(cpu_group(regime), case.name, "µs/request", broker.name, cpu_s / load.requests * 1e6)
            stage.rate(rate_group(regime), case.name, "records/s", broker.name, load.records_per_s)
        for broker in self._started:
            load, cpu_s = stage.calm.sampled(partial(self._fetched, broker, stage.settings.sample_s), OF_COST)
            per_gb = cpu_s / (load.wire_bytes / GB)
            stage.cost(fetch_group(regime), f"broker CPU, {FETCH}", "CPU-s/GB", broker.name, per_gb)
            stage.rate(fetch_group(regime), f"throughput, {FETCH}", "MB/s", broker.name, load.megabytes_per_s)

    def _produced(self, broker: Running, case: Case, seconds: float) -> tuple[raw.Load, float]:
        """A load and the CPU time of the broker for it."""
        if case.partitions_a_request > 1:
            return self._load(broker, self._many, case, seconds)
        with self._stage.topic(broker) as topic:
            return self._load(broker, topic, case, seconds)

    def _load(self, broker: Running, topic: str, case: Case, seconds: float) -> tuple[raw.Load, float]:
        batch, records = self._batches[case]
        self._stage.make_ready(broker, self._stage.settings.sample_bytes_max)
        before = broker.usage().cpu_s
        load = raw.produce_load(
            broker.bootstrap, topic, batch, records,
            acks=-1, seconds=seconds, bytes_max=self._stage.settings.sample_bytes_max,
            lanes=case.lanes, partitions_a_request=case.partitions_a_request,
        )  # fmt: skip
        return load, broker.usage().cpu_s - before

    def _fetched(self, broker: Running, seconds: float) -> tuple[raw.Load, float]:
        self._stage.make_ready(broker, 0)
        before = broker.usage().cpu_s
        topic = self._filled if broker.name != NULL else f"{self._filled}-r1000-b16000"
        load = raw.fetch_load(broker.bootstrap, topic, seconds=seconds, bytes_max=1 << 40)
        return load, broker.usage().cpu_s - before
