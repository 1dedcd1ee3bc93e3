"""Three nodes with three replicas of everything, Penstock's beside Kafka's: acks=all is all of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bench import brokers, perf_tool
from bench.brokers import APACHE, NULL
from bench.cluster import make_cluster
from bench.cluster_runs import Contender
from bench.headline.stage import Stage, latency_figures
from penstock.bench import raw

LANES = 6
RATE_PER_S = 200.0
THROUGHPUT = "3 replicas, acks=all"
EVERY_LEADER = "six connections, 16 KB batches, 1 KB records"
ONE_CONNECTION = "one connection with 5 in flight, 16 KB batches, 1 KB records"
TOOL = "kafka-producer-perf-test, 1 KB"
LATENCY = f"3 replicas, acks=all, latency at {RATE_PER_S:.0f} requests/s"
CPU = "3 replicas: CPU of all three brokers"


def measure(stage: Stage, *, with_tools: bool) -> None:
    """Both clusters run at once and are loaded in turn."""
    with ExitStack() as stack:
        home = stack.enter_context(brokers.scratch())
        names = [name for name in stage.names if name != NULL]
        started = [Contender(name, stack.enter_context(make_cluster(name, home / name))) for name in names]
        run = Replicated(stage, started)
        run.warm_up()
        rounds = stage.settings.rounds
        for number in range(rounds):
            stage.progress.step(number + rounds, rounds * 2, f"round {number + 1} of {rounds}")
            run.throughput()
            if with_tools:
                run.tool()
            run.latency()


class Replicated:
    def __init__(self, stage: Stage, started: Sequence[Contender]) -> None:
        self._stage = stage
        self._started = started
        self._batch, self._records = raw.make_batch(1_000, 16_000, "none")
        self._small, _count = raw.make_batch(100, 1_000, "none")

    @contextmanager
    def _topic(self, contender: Contender) -> Iterator[str]:
        topic = self._stage.topic_name()
        contender.new_topic(topic, LANES)
        try:
            yield topic
        finally:
            contender.drop_topic(topic)

    def warm_up(self) -> None:
        for contender in self._started:
            whole_s = self._stage.settings.cluster_warmup_s
            seconds = whole_s if contender.name == APACHE else min(whole_s, 3.0)
            self._stage.progress.step(0, 2, f"{contender.cluster.title} under load for {seconds:.0f} s")
            deadline = time.monotonic() + seconds
            for lanes in itertools.cycle((LANES, LANES, 1)):
                self._load(contender, lanes, min(4.0, seconds))
                if time.monotonic() > deadline:
                    break

    def _load(self, contender: Contender, lanes: int, seconds: float) -> tuple[raw.Load, float]:
        with self._topic(contender) as topic:
            leaders = contender.leaders(topic, LANES)
            before = contender.usage().cpu_s
            load = raw.produce_load(
                leaders[:lanes], topic, self._batch, self._records,
                acks=-1, seconds=seconds, bytes_max=self._stage.settings.cluster_bytes_max, lanes=lanes,
            )  # fmt: skip
            return load, contender.usage().cpu_s - before

    def throughput(self) -> None:
        stage = self._stage
        for (name, lanes), contender in itertools.product(((EVERY_LEADER, LANES), (ONE_CONNECTION, 1)), self._started):
            load, cpu_s = self._load(contender, lanes, stage.settings.cluster_s)
            stage.rate(THROUGHPUT, name, "records/s", contender.name, load.records_per_s)
            stage.cost(CPU, name, "CPU-s/GB", contender.name, cpu_s / (load.wire_bytes / 1e9))

    def tool(self) -> None:
        records = self._stage.settings.cluster_tool_records
        for contender in self._started:
            with self._topic(contender) as topic:
                rate = perf_tool.records_per_s(
                    contender.cluster.bootstrap, topic, record_bytes=1_000, records=records,
                    acks="all", codec="none", warmup_records=records // 4,
                )  # fmt: skip
            self._stage.rate(THROUGHPUT, TOOL, "records/s", contender.name, rate)

    def latency(self) -> None:
        for contender in self._started:
            with self._topic(contender) as topic:
                measured = raw.latencies_ms(
                    contender.leaders(topic, LANES), topic, self._small,
                    acks=-1, rate_per_s=RATE_PER_S, seconds=self._stage.settings.cluster_latency_s, lanes=LANES,
                )  # fmt: skip
            latency_figures(self._stage, LATENCY, contender.name, measured)
