"""A flow becomes DataFrames and running queries on a session. Knows Spark and nothing of failures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.spark.errors import BadOption
from penstock.spark.lake.judging import BROKEN
from penstock.spark.naming import LAKE_FORMAT, TOPIC_FORMAT
from penstock.spark.pipeline.batches import writer_of
from penstock.spark.pipeline.expecting import delivering, kept, with_bits, with_identity
from penstock.spark.pipeline.flow import AVAILABLE_NOW, CONTINUOUS, Flow, Sink, SinkKind, Source, Step
from penstock.spark.pipeline.following import table_stream
from penstock.spark.pipeline.functions import function_of
from penstock.spark.pipeline.mirroring import kept_first
from penstock.spark.pipeline.records import as_records
from penstock.spark.pipeline.references import rows_of_reference
from penstock.spark.pipeline.rule_letters import HIDDEN
from penstock.spark.pipeline.together import check_stateless, lead_of, shared_writer
from penstock.spark.pipeline.wiring import lake_options, plain_options, sends_rows, source_options, topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def ship(spark: SparkSession, flow: Flow) -> None:
    """Makes the Python of a flow importable here, and on the executors what it asks to be there.

    Modules of steps need not be there: what UDFs use of them travels with the UDFs.
    """
    directory = str(flow.directory)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    for file in flow.spark.python:
        spark.sparkContext.addPyFile(str(file))


def rows_for(
    spark: SparkSession, flow: Flow, sink: Sink, read: Callable[[Source], DataFrame] | None = None
) -> DataFrame:
    """The rows that a sink takes. Sources and steps become temporary views under their names.

    Each sink has views of its own making, so views of the last one are replaced: what was made of them stays. A sink
    that judges gets the bits of rules beside its rows.
    """
    sources, steps = flow.lineage(sink)
    made: dict[str, DataFrame] = {}
    for source in sources:
        rows = read(source) if read is not None else stream_of(spark, flow, source)
        made[source.name] = _watermarked(_held(rows, flow, source, sink), source)
        made[source.name].createOrReplaceTempView(source.name)
    for reference in flow.references_of(sink):
        made[reference.name] = rows_of_reference(spark, flow, reference)
        made[reference.name].createOrReplaceTempView(reference.name)
    for step in steps:
        made[step.name] = _held(_step(spark, flow, step, [made[name] for name in step.inputs]), flow, step, sink)
        made[step.name].createOrReplaceTempView(step.name)
    rows = made[sink.reads]
    if not sink.expect:
        return rows
    before = len(flow.expected_of(sink.reads)) if sink.judges else 0
    rows = with_bits(rows, f"sinks.{sink.name}", sink.expect, first=before)
    return rows if sink.judges else kept(rows, sink.expect)


def _held(rows: DataFrame, flow: Flow, part: Source | Step, sink: Sink) -> DataFrame:
    """Rows of a source or a step, held against what is expected of them; the sink's own writer may leave them out."""
    if not part.expect:
        return rows
    # Mates of a shared query get the rows of their source with its bits.
    rows = rows if BROKEN in rows.columns else _judged(rows, flow, part)
    return rows if sink.judges and sink.reads == part.name else kept(rows, part.expect)


def _judged(rows: DataFrame, flow: Flow, part: Source | Step) -> DataFrame:
    """Rows with the bits of the rules that they break, and dead ones of a source on their way."""
    if not part.expect:
        return rows
    rows = with_bits(rows, part.name, part.expect)
    return delivering(rows, part.expect, source_options(flow, part)) if isinstance(part, Source) else rows


def _watermarked(rows: DataFrame, source: Source) -> DataFrame:
    return rows if source.watermark is None else rows.withWatermark(source.watermark.column, source.watermark.delay)


def stream_of(
    spark: SparkSession, flow: Flow, source: Source, *, sink: Sink | None = None, start: str | None = None
) -> DataFrame:
    """A source as a stream, for the query of `sink`; `start` replaces what it says itself."""
    if source.table is not None:
        return table_stream(spark, flow, source, start=start)
    options = source_options(flow, source, sink=sink, start=start)
    reader = spark.readStream.format(TOPIC_FORMAT)
    if sink is not None and sends_rows(flow, source, sink):
        rows = with_identity(lambda given: reader.options(**given).load(), options)
    else:
        rows = reader.options(**options).load()
    if source.cdc:
        from penstock.spark.lake.keyed.shaping import unwrapped

        rows = unwrapped(rows, source.cdc, keep=HIDDEN)
    return rows


def _step(spark: SparkSession, flow: Flow, step: Step, inputs: list[DataFrame]) -> DataFrame:
    if step.sql is not None:
        return spark.sql(step.sql)
    assert step.python is not None, "a step has sql or python"
    from pyspark.sql import DataFrame

    made = function_of(step.python, flow.directory)(*inputs)
    if not isinstance(made, DataFrame):
        raise BadOption(f"step {step.name}: {step.python} gave {type(made).__name__}, where a DataFrame is wanted")
    return made


def start_query(spark: SparkSession, flow: Flow, sink: Sink, *, start: str | None = None) -> StreamingQuery:
    """Builds and starts the query of one sink, from its checkpoint if it has one."""
    query = flow.query_name(sink)
    if sink.together is not None:
        return _start_shared(spark, flow, sink, start)
    rows = rows_for(spark, flow, sink, lambda source: stream_of(spark, flow, source, sink=sink, start=start))
    records = as_records(rows, sink) if sink.kind is SinkKind.TOPIC else rows
    writer = records.writeStream if sink.mode == "append" else rows.writeStream
    writer = writer.queryName(query).outputMode(sink.mode).option("checkpointLocation", flow.checkpoint(sink))
    return _aimed(_triggered(writer, sink.trigger), flow, sink).start()


def _start_shared(spark: SparkSession, flow: Flow, sink: Sink, start: str | None) -> StreamingQuery:
    """The query of all sinks that stand together, unless a mate has started it."""
    query = flow.query_name(sink)
    running = query_of_mates(spark, flow, sink)
    if running is not None:
        return running
    lead = lead_of(flow, sink)
    (source,) = flow.lineage(sink)[0]
    rows = stream_of(spark, flow, source, sink=lead, start=start)
    mates = flow.mates(sink)
    for mate in mates:
        check_stateless(rows_for(spark, flow, mate, lambda _source: rows), mate)
    # What the source itself expects is judged once, and its bits are there for every mate that judges.
    judged = _judged(rows, flow, source)
    writer = judged.writeStream.queryName(query).option("checkpointLocation", flow.checkpoint(sink))
    write = kept_first(flow, sink, shared_writer(flow, mates, rows_for))
    return _triggered(writer, sink.trigger).foreachBatch(write).start()


def query_of_mates(spark: SparkSession, flow: Flow, sink: Sink) -> StreamingQuery | None:
    """The query that a sink shares, when a mate has started it."""
    if sink.together is None:
        return None
    query = flow.query_name(sink)
    return next((each for each in spark.streams.active if each.name == query), None)


def _triggered(writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime="0 seconds" if trigger == CONTINUOUS else trigger)


def _aimed(writer: DataStreamWriter, flow: Flow, sink: Sink) -> DataStreamWriter:
    match sink.kind:
        case SinkKind.TABLE if sink.many is not None or sink.keyed is not None:
            return writer.foreachBatch(kept_first(flow, sink, writer_of(flow, sink)))
        case SinkKind.TABLE:
            return writer.format(LAKE_FORMAT).options(**lake_options(flow, sink))
        case SinkKind.TOPIC if sink.mode == "append":
            return writer.format(TOPIC_FORMAT).options(**topic_options(flow, sink))
        case SinkKind.TOPIC:
            # Spark lets no Python sink take changes of rows; a batch of them it writes anywhere.
            return writer.foreachBatch(kept_first(flow, sink, writer_of(flow, sink)))
        case SinkKind.PARQUET:
            named = writer.format("parquet").option("path", flow.table_path(sink)).options(**plain_options(sink))
            return named.partitionBy(*sink.partition_by) if sink.partition_by else named
        case SinkKind.FOREACH_BATCH:
            function = kept_first(flow, sink, function_of(sink.target, flow.directory))
            return writer.options(**plain_options(sink)).foreachBatch(function)
        case SinkKind.CONSOLE:
            return writer.format("console").options(**{"truncate": "false", **plain_options(sink)})
