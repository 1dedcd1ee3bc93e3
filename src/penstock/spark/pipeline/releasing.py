"""What an exactly-once topic's query leaves open when it ends: aborted at once, so that readers do not wait for it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from penstock.spark.pipeline import places
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.wiring import topic_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("penstock.spark.pipeline")


def release_topic(spark: SparkSession, flow: Flow, sink: Sink) -> None:
    """Of a sink whose query has ended, or has failed. Never fails: the next start aborts what this could not."""
    if not sink.exactly_once or not places.is_begun(flow.checkpoint(sink)):
        return
    from penstock.spark.topic_sink.options import SinkOptions
    from penstock.spark.topic_sink.transactions.incarnation import run_of
    from penstock.spark.topic_sink.transactions.plan import release

    try:
        # Sinks are planned below the JVM, and we are above it.
        jvm: Any = spark._jvm
        run = run_of(int(jvm.java.lang.ProcessHandle.current().pid()))
    except Exception as gone:
        _log.warning("what is open of sink %s is aborted by the next start, or its time: %s", sink.name, gone)
        return
    release(SinkOptions.of({**topic_options(flow, sink), "checkpointLocation": flow.checkpoint(sink)}), run)
