"""Sinks that stand together: one query reads and decodes their source once, and hands each batch to all of them.

What a sink's steps do is done on the batch. That gives the rows that a query of its own would give as long as no step
looks beyond a batch; one that does is refused before anything starts. Tables come last: they say where a query goes on
that has lost its checkpoint, and then nothing else may lack what they have. A batch that failed half way is handed to
all of them again: tables know what they have, topics have it twice unless they are written in transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import BadOption
from penstock.spark.pipeline.batches import writer_of
from penstock.spark.pipeline.flow import Flow, Sink, SinkKind, Source
from penstock.spark.pipeline.handing import BatchWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    Rows = Callable[[SparkSession, Flow, Sink, Callable[[Source], DataFrame]], DataFrame]

_STATEFUL: Final = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "Sort",
        "TransformWithState",
        "TransformWithStateInPySpark",
        "Window",
    }
)
"""Nodes of Spark's plans that look at more than one row: over a stream they mean all of it, over a batch the batch."""
_PLAN_MOST: Final = 10_000


def lead_of(flow: Flow, sink: Sink) -> Sink:
    """The sink on whose behalf the shared query reads: the one that carries the source's letters, if it is one."""
    mates = flow.mates(sink)
    (source,) = flow.lineage(sink)[0]
    carrier = flow.carrier(source)
    return carrier if carrier in mates else mates[0]


def shared_writer(flow: Flow, mates: Sequence[Sink], rows_of: Rows) -> BatchWriter:
    """Hands a batch of the source's rows to every sink."""
    writers = [(sink, writer_of(flow, sink)) for sink in tables_last(mates)]

    def write(batch_rows: DataFrame, batch: int) -> None:
        held = batch_rows.persist()
        try:
            for sink, writer in writers:
                writer(rows_of(batch_rows.sparkSession, flow, sink, lambda _source: held), batch)
        finally:
            held.unpersist()

    return write


def tables_last(mates: Sequence[Sink]) -> list[Sink]:
    return sorted(mates, key=lambda sink: sink.kind is SinkKind.TABLE)


def check_stateless(rows: DataFrame, sink: Sink) -> None:
    """`BadOption` for steps that look beyond a batch; `rows` are the sink's, as a stream."""
    plan: Any = rows._jdf.queryExecution().analyzed()
    left, seen = [plan], 0
    while left and seen < _PLAN_MOST:
        node, seen = left.pop(), seen + 1
        if not node.isStreaming():
            continue
        children = node.children()
        found = [children.apply(at) for at in range(children.size())]
        name = node.nodeName()
        if name in _STATEFUL or (name == "Join" and sum(each.isStreaming() for each in found) > 1):
            raise BadOption(
                f"sink {sink.name}: a step before it looks beyond one batch ({name}), and sinks that stand together "
                f"are handed batches: leave together = {sink.together!r} away for this one"
            )
        left += found
