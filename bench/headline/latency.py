"""Latency at a fixed rate, without coordinated omission: produce with acks=all, and from producer to consumer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

from bench.brokers import NULL, Running
from bench.headline import calm, end_to_end
from bench.headline.stage import LANES, Stage, latency_figures
from penstock.bench import raw

RECORD_BYTES, BATCH_BYTES = 1_000, 16_000
PRODUCE = "produce latency at 20 MB/s, acks=all"
END_TO_END = "end-to-end latency at 20 MB/s, acks=all"
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995)


def measure(stage: Stage, started: Sequence[Running]) -> None:
    """All brokers in turn, round by round; the plot has the percentiles of all rounds together."""
    batch, _records = raw.make_batch(RECORD_BYTES, BATCH_BYTES, "none")
    rate = stage.settings.latency_bytes_per_s / len(batch)
    rounds = stage.settings.latency_rounds
    produced: dict[str, list[float]] = {}
    arrived: dict[str, list[float]] = {}
    for number, broker in itertools.product(range(rounds), started):
        at = number * len(started) + started.index(broker)
        stage.progress.step(at, rounds * len(started), f"round {number + 1} of {rounds}: {stage.title(broker.name)}")
        measured = stage.calm.sampled(partial(_produce_ms, stage, broker, batch, rate), calm.OF_LATENCY)
        latency_figures(stage, PRODUCE, broker.name, measured)
        produced.setdefault(broker.name, []).extend(measured)
        if broker.name == NULL:
            continue
        measured = stage.calm.sampled(partial(_end_to_end_ms, stage, broker, batch, rate), calm.OF_LATENCY)
        latency_figures(stage, END_TO_END, broker.name, measured)
        arrived.setdefault(broker.name, []).extend(measured)
    stage.curves["latency"] = percentile_lines(stage, produced)
    stage.curves["end-to-end"] = percentile_lines(stage, arrived)


def _produce_ms(stage: Stage, broker: Running, batch: bytes, rate_per_s: float) -> list[float]:
    seconds = stage.settings.latency_s
    stage.make_ready(broker, round(seconds * stage.settings.latency_bytes_per_s))
    with stage.topic(broker) as topic:
        return raw.latencies_ms(
            broker.bootstrap, topic, batch, acks=-1, rate_per_s=rate_per_s, seconds=seconds, lanes=LANES
        )


def _end_to_end_ms(stage: Stage, broker: Running, batch: bytes, rate_per_s: float) -> list[float]:
    seconds = stage.settings.end_to_end_s
    stage.make_ready(broker, round(seconds * stage.settings.latency_bytes_per_s))
    with stage.topic(broker, 1) as topic:
        return end_to_end.latencies_ms(broker.bootstrap, topic, batch, rate_per_s=rate_per_s, seconds=seconds)


def percentile_lines(stage: Stage, measured_ms: dict[str, list[float]]) -> dict[str, list[tuple[float, float]]]:
    """Points (how many of a thousand take longer, ms): on a logarithmic axis the tail has the room that it needs."""
    return {
        stage.title(name): [(1 / (1 - share), raw.percentile(values, share)) for share in SHARES]
        for name, values in measured_ms.items()
    }
