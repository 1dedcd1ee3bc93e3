"""Rows of a query into a table: Spark's writers. Tasks write files, the driver commits them with their offsets.

Spark makes a writer twice a batch: one is pickled to the tasks, one commits. Neither lives longer than that. `abort`
deletes nothing: it is also called after a commit that failed, or seemed to.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.spark.checkpoints.keeping import keep
from penstock.spark.errors import BadOption
from penstock.spark.lake import offset_log
from penstock.spark.lake.evolution import Misfit, plain, plan_fit, with_nulls
from penstock.spark.lake.judging import BROKEN, check_within, of_option
from penstock.spark.lake.landing import Wanted, dead_letter_options, land, write_down
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.partitioning import PartitionField, check_fields
from penstock.spark.lake.store import BatchCommit, CannotEvolve, Commit, TableStore
from penstock.spark.lake.writing import WritePlan, Written, write_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_log = logging.getLogger(__name__)


@dataclass
class TaskWrote(WriterCommitMessage):
    """What a task tells the driver."""

    written: Written
    query_id: str = ""


def plan_writing(store: TableStore, options: LakeOptions, rows: pa.Schema) -> WritePlan:
    """How tasks write rows of that schema for that table, as it is now or will be made."""
    table = None
    partition_by = [str(PartitionField.of(text)) for text in options.partition_by]
    if store.exists():
        store.refresh()
        table = store.schema()
        partition_by = _same_partition(store, partition_by)
    layout = store.layout()
    given = plain(rows, small_integers=layout.small_integers)
    fit = plan_fit(given, table, can_widen=store.can_widen, add=options.schema_evolution == "add")
    if fit.misfits and not options.dead_letters_path:
        raise CannotEvolve(_unfit(store, options, fit.misfits))
    fields = tuple(PartitionField.of(text) for text in partition_by)
    if table is not None:
        fit = with_nulls(fit, [field.column for field in fields])
    check_fields(fields, fit.files)
    dead = open_store(dead_letter_options(options)).layout() if options.dead_letters_path else None
    return WritePlan(
        table=store.location,
        directory=layout.directory,
        fit=fit,
        partition=fields,
        keeps_partition_columns=layout.keeps_partition_columns,
        compression=options.compression,
        target_bytes=options.target_file_bytes,
        dead_directory=dead.directory if dead else "",
        storage=store.storage,
    )


def _same_partition(store: TableStore, wanted: Sequence[str]) -> list[str]:
    there = store.partition_by()
    if wanted and list(wanted) != there:
        raise BadOption(
            f"option partition.by is {','.join(wanted)}, but the table {store.location} is partitioned by "
            f"{','.join(there) or 'nothing'}: leave the option out, or write to another table"
        )
    return there


def _unfit(store: TableStore, options: LakeOptions, misfits: Sequence[Misfit]) -> str:
    told = "; ".join(map(str, misfits))
    return (
        f"the rows may not fit the {store.format} table {store.location}: {told}. Cast the column in the query, or set "
        f"deadLetters=table:PATH so that rows which do not fit go there and the others enter, or write to another table"
        + ("; schema.evolution=add lets columns be added" if options.schema_evolution == "none" else "")
    )


class _TableWriter:
    """What both writers do."""

    def __init__(self, options: LakeOptions, schema: StructType, overwrite: bool) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self.options = options
        self.overwrite = overwrite
        rows = to_arrow_schema(schema, timezone="UTC")
        rules = of_option(options.expect) if options.expect else ()
        if rules:
            rows = rows.remove(rows.get_field_index(BROKEN))
        self.plan = replace(plan_writing(open_store(options), options, rows), rules=rules)

    def _written(self, rows: Iterator[pa.RecordBatch], query_id: str, batch_id: int) -> Written:
        attempt = f"{_task():05d}-{uuid.uuid4().hex}"
        return write_rows(rows, self.plan, attempt=attempt, query=query_id, batch=batch_id)

    def _counted(self, batch: BatchCommit, tasks: Sequence[Written]) -> BatchCommit:
        """With what the tasks wrote and left out; `RuleBroken` when that is more than a rule allows."""
        rules = self.plan.rules
        broken = [sum(task.broken[at] for task in tasks if task.broken) for at in range(len(rules))]
        sums = {name: sum(getattr(task, name) for task in tasks) for name in ("rows", "dead", "dropped", "sent")}
        check_within(rules, broken, sum(sums.values()), self.plan.table)
        return replace(
            batch,
            files=tuple(file for task in tasks for file in task.files),
            rows=sums["rows"],
            dead=sums["dead"] + sums["sent"],
            dropped=sums["dropped"],
            expectations={rule.name: count for rule, count in zip(rules, broken, strict=True) if count},
        )

    def _land_batch(self, batch_id: int, tasks: Sequence[Written]) -> None:
        """A micro-batch, with the offsets that Spark's log has for it."""
        offsets = offset_log.ranges_of(self.options.checkpoint, batch_id)
        query_id, apart = offset_log.query_id_of(self.options.checkpoint), self.options.apart
        batch = BatchCommit(
            query_id=f"{query_id}/{apart}" if apart else query_id,
            batch_id=batch_id,
            ranges=() if apart else offsets.ranges,
            overwrite=self.overwrite,
        )
        batch = self._counted(batch, tasks)
        if self.options.rows == "record":
            batch = explained(batch, offsets)
        self._land(batch, tasks)

    def _land(self, batch: BatchCommit, tasks: Sequence[Written]) -> Commit | None:
        """The commit; None when the batch was there already."""
        store = open_store(self.options)
        wanted = Wanted(self.plan.fit.table, tuple(map(str, self.plan.partition)))
        commit = land(store, self.options, wanted, batch, [file for task in tasks for file in task.dead_files])
        write_down(store, commit)
        if commit is not None:
            from penstock.spark.lake.upkeep import after_commit

            after_commit(self.options, commit)
        return commit


class LakeStreamWriter(_TableWriter, DataSourceStreamArrowWriter):
    """One micro-batch."""

    def __init__(self, options: LakeOptions, schema: StructType, overwrite: bool) -> None:
        if not options.checkpoint:
            raise BadOption(
                "the lake sink reads the offsets of a batch from the query's checkpoint: give the query "
                '.option("checkpointLocation", …) itself; a default in the session\'s settings is not told to sinks'
            )
        super().__init__(options, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        query_id, batch_id = _query_and_batch()
        return TaskWrote(self._written(iterator, query_id, batch_id), query_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        keep(self.options.checkpoint, self.options.mirror)
        tasks = [message.written for message in messages if isinstance(message, TaskWrote)]
        self._land_batch(batchId, tasks)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        _log.warning("batch %d to %s was given up; its files stay until a clean-up", batchId, self.plan.table)


class LakeBatchWriter(_TableWriter, DataSourceArrowWriter):
    """A DataFrame, at once: no offsets, never a replay. Or, by option `batch`, what foreachBatch was handed."""

    def __init__(self, options: LakeOptions, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self.query_id = offset_log.query_id_of(options.checkpoint) if options.batch >= 0 else ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        return TaskWrote(self._written(iterator, self.query_id, self.options.batch))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        tasks = [message.written for message in messages if isinstance(message, TaskWrote)]
        if self.options.batch >= 0:
            self._land_batch(self.options.batch, tasks)
            return
        batch = BatchCommit(query_id=f"write-{uuid.uuid4().hex}", batch_id=-1, overwrite=self.overwrite)
        self._land(self._counted(batch, tasks), tasks)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _log.warning("a write to %s was given up; its files stay until a clean-up", self.plan.table)


def explained(batch: BatchCommit, offsets: offset_log.BatchOffsets) -> BatchCommit:
    """With the records that became no row, as the tasks that read them told: undecodable ones and absent offsets."""
    from penstock.spark.progress.reports import collect

    if batch.records >= sum(each.count for each in batch.ranges):
        return batch
    read = {(each.topic, each.partition): each for each in batch.ranges}
    dead, gaps = batch.dead, 0
    for bootstrap in offsets.bootstraps:
        for report in collect(bootstrap, batch.query_id, batch.batch_id, offsets.timestamp_ms):
            whole = read.get((report.topic, report.partition))
            if whole is not None and whole.start <= report.start and report.end <= whole.end:
                dead += report.dead
                gaps += report.missing
    return replace(batch, dead=dead, gaps=gaps)


def _query_and_batch() -> tuple[str, int]:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return "", -1
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    return query_id or "", int(batch_id) if batch_id else -1


def _task() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
