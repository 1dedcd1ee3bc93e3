"""A flow becomes DataFrames and running queries on a session. Knows Spark and nothing of failures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import BadOption
from penstock.spark.naming import LAKE_FORMAT, TOPIC_FORMAT
from penstock.spark.pipeline.flow import AVAILABLE_NOW, CONTINUOUS, Flow, Sink, SinkKind, Source, Step
from penstock.spark.pipeline.mirroring import kept_first
from penstock.spark.pipeline.wiring import lake_options, plain_options, source_options, topic_options
from penstock.spark.topic_sink.options import BATCH_OPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

KAFKA_COLUMNS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"}
)
_COPIED: Final = ("key", "value", "headers", "timestamp")
"""What a raw record takes along to another topic; its partition and offset were those of the old one."""


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

    Each sink has views of its own making, so views of the last one are replaced: what was made of them stays.
    """
    sources, steps = flow.lineage(sink)
    made: dict[str, DataFrame] = {}
    for source in sources:
        made[source.name] = read(source) if read is not None else stream_of(spark, flow, source)
        made[source.name].createOrReplaceTempView(source.name)
    for step in steps:
        made[step.name] = _step(spark, flow, step, [made[name] for name in step.inputs])
        made[step.name].createOrReplaceTempView(step.name)
    return made[sink.reads]


def stream_of(
    spark: SparkSession, flow: Flow, source: Source, *, sink: Sink | None = None, start: str | None = None
) -> DataFrame:
    """A source as a stream, for the query of `sink`; `start` replaces what it says itself."""
    options = source_options(flow, source, sink=sink, start=start)
    rows = spark.readStream.format(TOPIC_FORMAT).options(**options).load()
    return rows if source.watermark is None else rows.withWatermark(source.watermark.column, source.watermark.delay)


def _step(spark: SparkSession, flow: Flow, step: Step, inputs: list[DataFrame]) -> DataFrame:
    if step.sql is not None:
        return spark.sql(step.sql)
    assert step.python is not None, "a step has sql or python"
    from pyspark.sql import DataFrame

    made = function_of(step.python, flow.directory)(*inputs)
    if not isinstance(made, DataFrame):
        raise BadOption(f"step {step.name}: {step.python} gave {type(made).__name__}, where a DataFrame is wanted")
    return made


def function_of(reference: str, directory: Path) -> Callable[..., Any]:
    """`module:function`, imported. What is beside the pipeline file is pickled as it is, not by its name."""
    from pyspark.cloudpickle import register_pickle_by_value

    name_of_module, _, name = reference.partition(":")
    try:
        module = importlib.import_module(name_of_module)
        function = getattr(module, name)
    except ImportError as missing:
        raise BadOption(f"{reference} cannot be imported: {missing}") from missing
    except AttributeError:
        raise BadOption(f"module {name_of_module} has no {name!r}") from None
    if module.__file__ is not None and Path(module.__file__).parent == directory:
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark's copy has no types
    if not callable(function):
        raise BadOption(f"{reference} is no function")
    found: Callable[..., Any] = function
    return found


def start_query(spark: SparkSession, flow: Flow, sink: Sink, *, start: str | None = None) -> StreamingQuery:
    """Builds and starts the query of one sink, from its checkpoint if it has one."""
    query = flow.query_name(sink)
    rows = rows_for(spark, flow, sink, lambda source: stream_of(spark, flow, source, sink=sink, start=start))
    writer = rows.writeStream if sink.kind is not SinkKind.TOPIC else as_records(rows, sink).writeStream
    writer = writer.queryName(query).outputMode(sink.mode).option("checkpointLocation", flow.checkpoint(sink))
    return _aimed(_triggered(writer, sink.trigger), flow, sink).start()


def _triggered(writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime="0 seconds" if trigger == CONTINUOUS else trigger)


def _aimed(writer: DataStreamWriter, flow: Flow, sink: Sink) -> DataStreamWriter:
    match sink.kind:
        case SinkKind.TABLE:
            return writer.format(LAKE_FORMAT).options(**lake_options(flow, sink))
        case SinkKind.TOPIC if sink.mode == "append":
            return writer.format(TOPIC_FORMAT).options(**topic_options(flow, sink))
        case SinkKind.TOPIC:
            # Spark lets no Python sink take changes of rows; a batch of them it writes anywhere.
            place = {"checkpointLocation": flow.checkpoint(sink)} if sink.exactly_once else {}
            return writer.foreachBatch(_write_records({**topic_options(flow, sink), **place}, once=sink.exactly_once))
        case SinkKind.PARQUET:
            named = writer.format("parquet").option("path", flow.table_path(sink)).options(**plain_options(sink))
            return named.partitionBy(*sink.partition_by) if sink.partition_by else named
        case SinkKind.FOREACH_BATCH:
            function = kept_first(flow, sink, function_of(sink.target, flow.directory))
            return writer.options(**plain_options(sink)).foreachBatch(function)
        case SinkKind.CONSOLE:
            return writer.format("console").options(**{"truncate": "false", **plain_options(sink)})


def _write_records(options: dict[str, str], *, once: bool) -> Callable[[DataFrame, int], None]:
    def write(rows: DataFrame, batch: int) -> None:
        which = {BATCH_OPTION: str(batch)} if once else {}
        rows.write.format(TOPIC_FORMAT).options(**options, **which).mode("append").save()

    return write


def as_records(rows: DataFrame, sink: Sink) -> DataFrame:
    """Rows as a topic takes them: those that look like records go as they are, others become JSON."""
    from pyspark.sql import functions as f

    columns = rows.columns
    if set(columns) <= KAFKA_COLUMNS and "value" in columns and sink.key is None:
        raw = "offset" in columns or "timestampType" in columns
        return rows.select(*(name for name in _COPIED if name in columns)) if raw else rows
    value = f.to_json(f.struct(*(f.col(f"`{name}`") for name in columns))).alias("value")
    if sink.key is None:
        return rows.select(value)
    if sink.key not in columns:
        raise BadOption(f"sink {sink.name}: key = {sink.key!r} is no column; there is {', '.join(columns)}")
    return rows.select(f.col(f"`{sink.key}`").cast("string").alias("key"), value)
