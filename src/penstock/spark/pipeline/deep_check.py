"""What only Spark can tell of a flow: whether its SQL is SQL, and whether columns and types fit. Starts no query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from penstock.declared.fields import Notes
from penstock.declared.mistakes import Mistake
from penstock.declared.positions import Path, Place, Positions
from penstock.spark.pipeline.building import rows_for, ship
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind, Source, Step
from penstock.spark.pipeline.option_check import check_partitions
from penstock.spark.pipeline.records import as_records
from penstock.spark.pipeline.together import check_stateless
from penstock.spark.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINE_POS = re.compile(r"\(line (\d+), pos (\d+)\)")


def deep_check(flow: Flow, spark: SparkSession) -> list[Mistake]:
    """Every sink's rows are planned; each mistake is told once, where it is. Schemas to infer need the broker."""
    notes = Notes(Positions(flow.path.read_text(encoding="utf-8")))
    ship(spark, flow)
    for sink in flow.sinks:
        rows = _rows(flow, spark, sink, notes)
        if rows is not None:
            _check_sink(spark, sink, rows, notes)
    return sorted(set(notes.mistakes))


def _rows(flow: Flow, spark: SparkSession, sink: Sink, notes: Notes) -> DataFrame | None:
    """Step after step, so that what fails has a name."""
    sources, steps = flow.lineage(sink)
    parts: list[Source | Step] = [*sources, *steps]
    for part in parts:
        try:
            rows_for(spark, flow, _reading(sink, part.name))
        except Exception as failure:  # Spark's, and whatever functions of the user's raise
            if isinstance(part, Step):
                place, who = place_in_step(flow, part, failure, notes), f"step {part.name}"
            else:
                place, who = notes.positions.of(("sources", part.name)), f"source {part.name}"
            notes.wrong_at(place, f"{who}: {reason_of(failure).words}")
            return None
    return rows_for(spark, flow, sink)


def _reading(sink: Sink, name: str) -> Sink:
    from dataclasses import replace

    return replace(sink, reads=name)


def place_in_step(flow: Flow, step: Step, failure: Exception, notes: Notes) -> Place:
    """Where in the file Spark stumbled."""
    path: Path = next(
        (("steps", i) for i in range(len(flow.steps)) if notes.positions.of(("steps", i)).line == step.line), ("steps",)
    )
    if step.sql is None:
        return notes.positions.of((*path, "python"))
    at = _offset_in(step.sql, failure)
    return notes.positions.inside((*path, "sql"), step.sql, at)


def _offset_in(sql: str, failure: Any) -> int:
    """At which character of the SQL Spark stumbled; 0 when it does not say."""
    try:
        contexts = failure.getQueryContext()
        if contexts:
            return max(0, int(contexts[0].startIndex()))
    except Exception:  # not every exception of Spark's has one, nor can always be asked
        pass
    found = _LINE_POS.search(str(failure))
    if found is None:
        return 0
    lines = sql.splitlines(keepends=True)[: int(found[1]) - 1]
    return sum(map(len, lines)) + int(found[2])


def _check_sink(spark: SparkSession, sink: Sink, rows: DataFrame, notes: Notes) -> None:
    check_partitions(sink, rows.columns, notes)
    try:
        if sink.together is not None:
            check_stateless(rows, sink)
        records = as_records(rows, sink) if sink.kind is SinkKind.TOPIC else rows
        _check_mode(spark, records, sink.mode)
    except Exception as failure:  # Spark's
        notes.wrong(("sinks", sink.name), f"sink {sink.name}: {reason_of(failure).words}")


def _check_mode(spark: SparkSession, rows: DataFrame, mode: str) -> None:
    """The very check that Spark makes when a query starts: aggregates without a watermark cannot be appended."""
    jvm = spark._jvm
    assert jvm is not None, "a session of this process has its JVM"
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    chosen = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode]()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), chosen)
