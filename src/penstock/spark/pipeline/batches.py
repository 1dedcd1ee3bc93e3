"""What a sink does with one micro-batch that it is handed: the writers of foreachBatch.

A batch may be handed over again after a failure. A table knows by its offsets what it has; a topic that is written in
transactions, by its decisions; everything else has it twice then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.naming import TOPIC_FORMAT
from penstock.spark.pipeline.changes_wiring import keyed_settings
from penstock.spark.pipeline.fanning import fan_writer
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind
from penstock.spark.pipeline.functions import function_of
from penstock.spark.pipeline.handing import BatchWriter, write_table
from penstock.spark.pipeline.records import as_records
from penstock.spark.pipeline.wiring import lake_options, topic_options
from penstock.spark.topic_sink.options import BATCH_OPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def writer_of(flow: Flow, sink: Sink) -> BatchWriter:
    """Writes the rows of a batch where the sink has them; when it returns they are there."""
    match sink.kind:
        case SinkKind.TABLE if sink.many is not None:
            return fan_writer(flow, sink)
        case SinkKind.TABLE if sink.keyed is not None:
            return changes_writer(flow, sink)
        case SinkKind.TABLE:
            return table_writer(flow, sink)
        case SinkKind.TOPIC:
            return topic_writer(flow, sink)
        case SinkKind.FOREACH_BATCH:
            return function_of(sink.target, flow.directory)
        case SinkKind.CONSOLE:
            return lambda rows, _batch: rows.show(truncate=False)
        case SinkKind.PARQUET:
            raise AssertionError("a directory of Parquet files is Spark's own sink, which is handed no batches")


def table_writer(flow: Flow, sink: Sink) -> BatchWriter:
    """Rows and the offsets of the batch in one commit, if the table stands where the batch begins."""
    options = lake_options(flow, sink)
    mode = "overwrite" if sink.mode == "complete" else "append"
    return lambda rows, batch: write_table(rows, options, flow.checkpoint(sink), batch, mode)


def changes_writer(flow: Flow, sink: Sink) -> BatchWriter:
    """Changes become inserts, updates and deletes by key, one commit with the offsets of the batch."""
    from penstock.spark.lake.keyed.writer import keyed_writer
    from penstock.spark.lake.options import LakeOptions

    told = {**lake_options(flow, sink), "checkpointLocation": flow.checkpoint(sink)}
    return keyed_writer(LakeOptions.of(told), keyed_settings(flow, sink))


def topic_writer(flow: Flow, sink: Sink) -> BatchWriter:
    """Rows become records."""
    place = {"checkpointLocation": flow.checkpoint(sink)} if sink.exactly_once else {}
    options = {**topic_options(flow, sink), **place}

    def write(rows: DataFrame, batch: int) -> None:
        which = {BATCH_OPTION: str(batch)} if sink.exactly_once else {}
        records = as_records(rows, sink)
        records.write.format(TOPIC_FORMAT).options(**options, **which).mode("append").save()

    return write
