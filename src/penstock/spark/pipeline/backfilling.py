"""A part of the past, once: batch reads from a time to a time through the same steps, into sinks that can take it.

It is no stream: it has no checkpoint and moves no offsets. So it never goes into a table that is fed by offsets, whose
rows it would double; it fills one of its own, which a second backfill replaces. Topics get the records again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.spark.errors import BadOption
from penstock.spark.naming import LAKE_FORMAT, TOPIC_FORMAT
from penstock.spark.pipeline.building import rows_for, ship
from penstock.spark.pipeline.flow import LATEST, Flow, Sink, SinkKind, Source
from penstock.spark.pipeline.functions import function_of
from penstock.spark.pipeline.records import as_records
from penstock.spark.pipeline.starts import table_offsets
from penstock.spark.pipeline.wiring import lake_options, millis_of, plain_options, source_options, topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ONCE = -1
"""The batch id that a foreach_batch function is given: there are no batches."""

_STREAMS_ONLY = frozenset({"maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "queryname"})


@dataclass(frozen=True, slots=True)
class Backfill:
    """From `start` (earliest, or a time) to before `end` (latest, or a time)."""

    start: str
    end: str = LATEST
    into: str = ""
    """The table, directory or topic to fill in place of the sink's own."""


def aimed(flow: Flow, work: Backfill) -> Flow:
    """The flow whose sink goes where the backfill goes; `into` is for one sink. Pure."""
    if not work.into:
        return flow
    if len(flow.sinks) != 1:
        raise BadOption("--into is for one sink: name it with --sink")
    (sink,) = flow.sinks
    if sink.kind in (SinkKind.CONSOLE, SinkKind.FOREACH_BATCH):
        raise BadOption(f"--into: a {sink.kind} sink has no place that could be another")
    return replace(flow, sinks=(replace(sink, target=work.into),))


def range_options(flow: Flow, source: Source, sink: Sink, work: Backfill) -> dict[str, str]:
    """Options of a batch read of the range, for one sink. Pure."""
    options = source_options(flow, source, sink=sink, start=work.start)
    kept = {name: value for name, value in options.items() if name.lower() not in _STREAMS_ONLY}
    if work.end == LATEST:
        return {**kept, "endingOffsets": LATEST}
    return {**kept, "endingTimestamp": str(millis_of(work.end))}


def backfill(spark: SparkSession, flow: Flow, work: Backfill) -> list[str]:
    """Fills every sink of the flow; a sentence for each. Everything is checked before anything is written."""
    flow = aimed(flow, work)
    for sink in flow.sinks:
        _check(flow, sink)
    ship(spark, flow)

    def reader(sink: Sink) -> Callable[[Source], DataFrame]:
        return lambda source: spark.read.format(TOPIC_FORMAT).options(**range_options(flow, source, sink, work)).load()

    return [_fill(spark, flow, sink, reader(sink)) for sink in flow.sinks]


def _check(flow: Flow, sink: Sink) -> None:
    if any(source.table is not None for source in flow.lineage(sink)[0]):
        raise BadOption(
            f"sink {sink.name} is made of a table, of which no part is read by time: a new sink without a checkpoint "
            "has all of its rows"
        )
    if sink.many is not None:
        raise BadOption(
            f"sink {sink.name}: many tables are filled by their query alone, which knows what each of them has; give "
            f"--into the name of one table, and it gets the rows of all"
        )
    if sink.kind is SinkKind.TABLE and table_offsets(flow, sink):
        raise BadOption(
            f"sink {sink.name}: table {sink.target} is fed by offsets, a backfill would double its rows; fill another "
            f"one with --sink {sink.name} --into {sink.target}_backfill"
        )


def _fill(spark: SparkSession, flow: Flow, sink: Sink, read: Callable[[Source], DataFrame]) -> str:
    rows = rows_for(spark, flow, sink, read)
    match sink.kind:
        case SinkKind.TABLE:
            rows.write.format(LAKE_FORMAT).options(**lake_options(flow, sink)).mode("overwrite").save()
        case SinkKind.TOPIC:
            records = as_records(rows, sink)
            # Transactions belong to queries, which know their batches when they play them again.
            options = topic_options(flow, replace(sink, exactly_once=False))
            records.write.format(TOPIC_FORMAT).options(**options).mode("append").save()
        case SinkKind.PARQUET:
            writer = rows.write.format("parquet").options(**plain_options(sink)).mode("errorifexists")
            (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).save(flow.table_path(sink))
        case SinkKind.CONSOLE:
            rows.show(truncate=False)
        case SinkKind.FOREACH_BATCH:
            function_of(sink.target, flow.directory)(rows, ONCE)
    return f"sink {sink.name}: {sink.target or 'the console'} has what was asked for"
