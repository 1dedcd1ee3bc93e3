"""What Spark calls to write rows to topics. Checked on the driver, written in workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.spark.checkpoints.keeping import keep
from penstock.spark.errors import BadOption
from penstock.spark.topic_sink.delivery import AtLeastOnce, Written
from penstock.spark.topic_sink.options import EXACTLY_ONCE, SinkOptions, check_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.topic_sink.transactions.machine import Handout, TaskWrote
    from penstock.spark.topic_sink.transactions.plan import ExactlyOnce

NO_BATCH = -1
"""Of a write that belongs to no streaming query."""


@dataclass(frozen=True)
class TopicCommit(WriterCommitMessage):
    """A task's account of what it wrote. In a transaction: which one, and what the plan had handed out."""

    written: Written
    transaction: TaskWrote | None = None
    handout: Handout | None = None


class _TaskWriting:
    """What both kinds of writers do in a worker, and on the driver when a batch has ended."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, plans: bool = True) -> None:
        self.options = SinkOptions.of(options)
        check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields], self.options)
        self.plain = AtLeastOnce(self.options)
        self.once: ExactlyOnce | None = None
        if self.options.exactly_once and plans:
            from penstock.spark.topic_sink.transactions.plan import ExactlyOnce

            self.once = ExactlyOnce.planned(self.options)

    def write(self, batches: Iterator[pa.RecordBatch]) -> TopicCommit:
        from penstock.spark.running_query import running_query
        from penstock.spark.topic_sink.records import by_topic

        records = (each for batch in batches for each in by_topic(batch, self.options.topic))
        wrote = None if self.once is None else self.once.deliver(records)
        landed = self.plain.deliver(records) if wrote is None else wrote.landed
        rows = sum(each.rows for each in landed)
        query = running_query()
        written = Written("", NO_BATCH, 0, rows, landed)
        if query is not None:
            written = Written(query.id, query.batch_id, query.attempt, rows, landed)
        return TopicCommit(written, wrote, None if self.once is None else self.once.handout)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        keep(self.options.checkpoint, self.options.mirror)
        told = _told(messages)
        handout = self._handout(told)
        if handout is None:
            self.plain.commit([each.written for each in told], batch_id)
            return
        from penstock.spark.topic_sink.transactions.plan import commit

        commit(self.options, handout, [each.transaction for each in told if each.transaction is not None], batch_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        told = _told(messages)
        handout = self._handout(told)
        if handout is None:
            if not self.options.exactly_once:
                self.plain.abort([each.written for each in told], batch_id)
                return
            from penstock.spark.topic_sink.transactions.incarnation import driver_run
            from penstock.spark.topic_sink.transactions.plan import release

            # No task has said what it had; whatever it was, it is of this driver.
            release(self.options, driver_run())
            return
        from penstock.spark.topic_sink.transactions.plan import abort

        wrote = [each.transaction for each in told if each.transaction is not None]
        abort(self.options, handout, wrote, len(messages), batch_id)

    def _handout(self, told: Sequence[TopicCommit]) -> Handout | None:
        """One plan handed out for all tasks of a batch; None when none of them came back, or nothing is planned."""
        if self.once is not None:
            return self.once.handout
        return next((each.handout for each in told if each.handout is not None), None)


class TopicBatchWriter(DataSourceArrowWriter):
    """df.write.format("penstock").mode("append")"""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise BadOption("records of a topic cannot be overwritten: write with mode('append')")
        checked = SinkOptions.of(options)
        if checked.exactly_once and (checked.batch < 0 or not checked.checkpoint):
            raise BadOption(
                f"{EXACTLY_ONCE}=true is for streaming queries, which know what they have read: use writeStream"
            )
        self._batch = checked.batch
        self._writing = _TaskWriting(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writing.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._writing.commit(messages, self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._writing.abort(messages, self._batch)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """df.writeStream.format("penstock"). In complete mode every batch is written as it is, after those before it.

    Spark makes two for a batch: the one that `plans` goes to the tasks, the other one commits."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, plans: bool = True) -> None:
        checked = SinkOptions.of(options)
        if checked.exactly_once and not checked.checkpoint:
            raise BadOption(
                f"{EXACTLY_ONCE}=true reads the offsets of a batch from the query's checkpoint: give the query "
                '.option("checkpointLocation", …) itself; a default in the session\'s settings is not told to sinks'
            )
        self._writing = _TaskWriting(options, schema, plans=plans)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._writing.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._writing.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._writing.abort(messages, batchId)


def _told(messages: Sequence[WriterCommitMessage | None]) -> list[TopicCommit]:
    """Tasks that failed have no message."""
    return [message for message in messages if isinstance(message, TopicCommit)]
