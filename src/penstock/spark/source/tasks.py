"""What a task of Spark is given: spans to read, and perhaps a place to tell others of. Pickled to executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.datasource import InputPartition

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PublishedStart:
    """Where a batch begins, for all partitions of the query: all before it has been committed by the sink.

    The task that carries it commits the offsets to the group that shows the query's lag.
    """

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class TaskSpans(InputPartition):
    """The spans of one task. Spans of one partition are in order; only the first task of a batch publishes."""

    spans: tuple[Span, ...] = ()
    publish: PublishedStart | None = field(default=None)
