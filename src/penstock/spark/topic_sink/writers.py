"""What Spark calls to write rows to topics. Checked on the driver, written in workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.spark.errors import BadOption
from penstock.spark.topic_sink.delivery import AtLeastOnce, DeliveryPlan, Written
from penstock.spark.topic_sink.options import SinkOptions, check_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NO_BATCH = -1
"""Of a write that belongs to no streaming query."""


@dataclass(frozen=True)
class TopicCommit(WriterCommitMessage):
    """A task's account of what it wrote."""

    written: Written


class _TaskWriting:
    """What both kinds of writers do in a worker."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options = SinkOptions.of(options)
        check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields], self.options)
        self.plan: DeliveryPlan = AtLeastOnce(self.options)

    def write(self, batches: Iterator[pa.RecordBatch]) -> TopicCommit:
        from penstock.spark.running_query import running_query
        from penstock.spark.topic_sink.records import by_topic

        landed = self.plan.deliver(each for batch in batches for each in by_topic(batch, self.options.topic))
        rows = sum(each.rows for each in landed)
        query = running_query()
        if query is None:
            return TopicCommit(Written("", NO_BATCH, 0, rows, landed))
        return TopicCommit(Written(query.id, query.batch_id, query.attempt, rows, landed))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        self.plan.commit(_written(messages), batch_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        self.plan.abort(_written(messages), batch_id)


class TopicBatchWriter(DataSourceArrowWriter):
    """df.write.format("penstock").mode("append")"""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise BadOption("records of a topic cannot be overwritten: write with mode('append')")
        self._writing = _TaskWriting(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writing.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._writing.commit(messages, NO_BATCH)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._writing.abort(messages, NO_BATCH)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """df.writeStream.format("penstock"). In complete mode every batch is written as it is, after those before it."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._writing = _TaskWriting(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writing.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._writing.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._writing.abort(messages, batchId)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    """Tasks that failed have no message."""
    return [message.written for message in messages if isinstance(message, TopicCommit)]
