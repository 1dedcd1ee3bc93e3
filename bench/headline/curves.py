"""How a broker behaves as something grows: the batch, the record, the topic. Unpinned, by raw loader and raw reader."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from bench.brokers import NULL, Running
from bench.headline.stage import Stage
from penstock.bench import raw

BATCH_BYTES = (1_000, 4_000, 16_000, 64_000, 128_000, 512_000)
RECORD_BYTES = (100, 300, 1_000, 3_000, 10_000)
BY_BATCH = "throughput by batch size, records of 1 KB"
BY_RECORD = "throughput by record size, batches of 64 KB"
GROWTH = "a topic that grows"
GROWTH_STEPS = 8
FETCH_S = 0.4


def measure(stage: Stage, started: Sequence[Running]) -> None:
    """Two rounds over the sizes, then growth once, step by step on both brokers."""
    rounds = 2 if stage.settings.rounds > 1 else 1
    shapes = [(BY_BATCH, size, 1_000, size) for size in BATCH_BYTES]
    shapes += [(BY_RECORD, size, size, 64_000) for size in RECORD_BYTES]
    for number in range(rounds):
        stage.progress.step(number, rounds + 1, f"sizes, round {number + 1} of {rounds}")
        for (group, size, record_bytes, batch_bytes), broker in itertools.product(shapes, started):
            rate = _produced_per_s(stage, broker, record_bytes, batch_bytes)
            stage.rate(group, _size(size), "MB/s", broker.name, rate)
    for key, group, sizes in (("batch-size", BY_BATCH, BATCH_BYTES), ("record-size", BY_RECORD, RECORD_BYTES)):
        stage.curves[key] = {
            stage.title(broker.name): [
                (float(size), stage.results.series[group, _size(size)].median(broker.name) or 0.0) for size in sizes
            ]
            for broker in started
        }
    stage.progress.step(rounds, rounds + 1, "a topic that grows")
    _growth(stage, [broker for broker in started if broker.name != NULL])


def _produced_per_s(stage: Stage, broker: Running, record_bytes: int, batch_bytes: int) -> float:
    batch, records = raw.make_batch(record_bytes, batch_bytes, "none")
    with stage.topic(broker) as topic:
        stage.make_ready(broker, stage.settings.sample_bytes_max)
        load = raw.produce_load(
            broker.bootstrap, topic, batch, records,
            acks=-1, seconds=stage.settings.curve_s, bytes_max=stage.settings.sample_bytes_max,
        )  # fmt: skip
    return load.megabytes_per_s


def _growth(stage: Stage, started: Sequence[Running]) -> None:
    """One partition, filled in steps: what the step took, and how fast the whole is read at that size."""
    batch, records = raw.make_batch(1_000, 64_000, "none")
    topic = stage.topic_name()
    step_bytes = stage.settings.grown_bytes // GROWTH_STEPS
    lines: dict[str, list[tuple[float, float]]] = {}
    for broker in started:
        broker.new_topic(topic, 1)
    for number, broker in itertools.product(range(1, GROWTH_STEPS + 1), started):
        stage.make_ready(broker, step_bytes)
        load = raw.produce_load(
            broker.bootstrap, topic, batch, records,
            acks=-1, seconds=30, bytes_max=step_bytes, lanes=1,
        )  # fmt: skip
        read = raw.fetch_load(broker.bootstrap, topic, seconds=FETCH_S, bytes_max=1 << 40)
        grown_gb = number * step_bytes / 1e9
        title = stage.title(broker.name)
        lines.setdefault(f"{title}, produce", []).append((grown_gb, load.megabytes_per_s))
        lines.setdefault(f"{title}, fetch", []).append((grown_gb, read.megabytes_per_s))
        if number in (1, GROWTH_STEPS):
            words = f"{step_bytes / 1e9:.2g} GB" if number == 1 else f"{grown_gb:.2g} GB"
            stage.rate(GROWTH, f"produce at {words}", "MB/s", broker.name, load.megabytes_per_s)
            stage.rate(GROWTH, f"fetch at {words}", "MB/s", broker.name, read.megabytes_per_s)
    for broker in started:
        broker.drop_topic(topic)
    stage.curves["growth"] = lines


def _size(size: int) -> str:
    return f"{size} B" if size < 1_000 else f"{size // 1_000} KB"
