"""`/metrics` of a pipeline, in the words of Prometheus: a handful for the pipeline, one of each for a sink. Pure.

What nobody knows yet has no number: a sink that had no batch is not told to be fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Progress, SinkProgress, State
from penstock.spark.progress.records import ExpectationCount
from penstock.transport.prometheus import COUNTER, GAUGE, head_lines, labels_text, sample_line

PREFIX: Final = "penstock_pipeline_"
SINKS_MAX: Final = 1_000
"""With numbers of their own; the rest is counted in `left_out`."""


EXPECTATIONS_MAX: Final = 5_000


class OfPipeline(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[State, int], float]


class OfSink(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[SinkProgress, int], float | None]


class OfExpectation(NamedTuple):
    name: str
    help: str
    value: Callable[[ExpectationCount], int]


PIPELINE: Final = (
    OfPipeline("running", GAUGE, "1 while its driver runs.", lambda state, _: state.state == home.RUNNING),
    OfPipeline("state_seconds", GAUGE, "How long it is what it is.", lambda s, now: max(0, now - s.since_ms) / 1000),
    OfPipeline("restarts_total", COUNTER, "Drivers that were started again.", lambda state, _: state.restarts),
)
SINK: Final = (
    OfSink("sink_running", GAUGE, "1 while its query runs.", lambda sink, _: sink.state == home.RUNNING),
    OfSink("sink_failures_total", COUNTER, "Failures in a row; 0 after a batch.", lambda sink, _: sink.failures),
    OfSink(
        "freshness_seconds",
        GAUGE,
        "How long the oldest record waits that the sink has not taken; 0 when none does.",
        lambda sink, now: sink.fresh_s(now),
    ),
    OfSink(
        "fresh_within_seconds",
        GAUGE,
        "What the file promises of it; absent when nothing is promised.",
        lambda sink, _: sink.fresh_within_s or None,
    ),
    OfSink("lag_records", GAUGE, "Records that wait for it.", lambda sink, _: sink.lag if sink.begun else None),
    OfSink("batches_total", COUNTER, "The number of its next batch.", lambda sink, _: sink.batch_id + 1),
    OfSink("rows_total", COUNTER, "Rows read since the driver began.", lambda sink, _: sink.rows),
    OfSink("rows_per_second", GAUGE, "Rows read a second, in the last batch.", lambda sink, _: sink.rows_per_s),
    OfSink("batch_seconds", GAUGE, "What the last batch took.", lambda sink, _: _begun(sink, sink.batch_ms / 1000)),
    OfSink("last_batch_timestamp_seconds", GAUGE, "When that was.", lambda sink, _: _begun(sink, sink.at_ms / 1000)),
    OfSink("late_rows_total", COUNTER, "Rows behind the watermark, dropped.", lambda sink, _: sink.late_rows),
    OfSink(
        "watermark_timestamp_seconds",
        GAUGE,
        "Up to when events are expected to be there; absent without a watermark.",
        lambda sink, _: watermark_s(sink.watermark),
    ),
    OfSink("state_rows", GAUGE, "Rows that its state holds.", lambda sink, _: sink.state_rows),
    OfSink("state_bytes", GAUGE, "Memory that its state takes.", lambda sink, _: sink.state_bytes),
)


EXPECTATION: Final = (
    OfExpectation("expectation_rows_total", "Rows that were held against a rule.", lambda each: each.rows),
    OfExpectation("expectation_broken_total", "Rows that broke it, whatever became of them.", lambda each: each.broken),
)
"""Of each rule on rows, by the source, step or sink (`of`) that has it; since the driver began."""


def names() -> list[str]:
    """Of every metric, in the order of the page; the guide lists them."""
    every: list[str] = [each.name for group in (PIPELINE, SINK, EXPECTATION) for each in group]
    return [f"{PREFIX}{name}" for name in [*every, "left_out"]]


def page(state: State, progress: Progress | None, now_ms: int) -> str:
    """A counter of a driver begins anew with the next one."""
    sinks = () if progress is None else progress.sinks
    told = sinks[:SINKS_MAX]
    of_all = {"pipeline": state.name}
    lines: list[str] = []
    for each in PIPELINE:
        lines += [*_head(each.name, each.kind, each.help), _line(each.name, of_all, each.value(state, now_ms))]
    for metric in SINK:
        lines += _head(metric.name, metric.kind, metric.help)
        for sink in told:
            value = metric.value(sink, now_ms)
            if value is not None:
                lines.append(_line(metric.name, {**of_all, "sink": sink.sink}, value))
    rules = [(sink.sink, counted) for sink in told for counted in sink.expectations][:EXPECTATIONS_MAX]
    for of_rule in EXPECTATION:
        lines += _head(of_rule.name, COUNTER, of_rule.help)
        for name, counted in rules:
            labels = {**of_all, "sink": name, "of": counted.place, "expectation": counted.name}
            lines.append(_line(of_rule.name, labels, of_rule.value(counted)))
    lines += _head("left_out", GAUGE, "Sinks without numbers of their own, because there are too many.")
    lines.append(_line("left_out", of_all, len(sinks) - len(told)))
    return "\n".join(lines) + "\n"


def watermark_s(text: str) -> float | None:
    """Spark says 1970 as long as there is none."""
    if not text or text.startswith("1970-01-01"):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _begun(sink: SinkProgress, value: float) -> float | None:
    return value if sink.begun else None


def _head(name: str, kind: str, words: str) -> list[str]:
    return head_lines(PREFIX + name, kind, words)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    whole = int(value)
    return sample_line(PREFIX + name, labels_text(labels), whole if value == whole else value)
