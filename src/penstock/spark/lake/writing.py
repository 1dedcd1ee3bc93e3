"""What a task does: rows as they come, out into Parquet files. Runs in Spark's workers; pyarrow only.

Rows are held until there are enough for a row group, then sorted by partition and written, each partition to its own
file. A file that has reached its target size is closed and the next one begun. So memory is bounded by the rows held
and the number of open files, however many partitions the rows have.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.evolution import Fit
from penstock.spark.lake.fitting import Unfit, fit_rows
from penstock.spark.lake.judging import Rule, judge_rows
from penstock.spark.lake.parquet_files import FileShape, GrowingFile
from penstock.spark.lake.partitioning import PartitionField, by_partition
from penstock.spark.lake.store import WrittenFile
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

HELD_BYTES_MAX: Final = 64 << 20
"""Rows in memory before they become row groups."""
HELD_BYTES_MIN: Final = 1 << 16
OPEN_FILES_MAX: Final = 128

DEAD_ROWS: Final = pa.schema(
    [
        ("table", pa.string()),
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("column", pa.string()),
        ("error", pa.string()),
        ("row", pa.string()),
    ]
)
"""A dead-letter table of rows: where they were going, why they did not fit, and the row as JSON."""

DEAD_ROWS_HELD_MAX: Final = 10_000


class RowUnfit(SparkRoomError):
    """A row cannot enter the table, and the user chose to fail."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What tasks need to know, made on the driver and pickled to them."""

    table: str
    """The table's location, for dead letters."""
    directory: str
    fit: Fit
    partition: tuple[PartitionField, ...]
    keeps_partition_columns: bool
    compression: str
    target_bytes: int
    dead_directory: str = ""
    """Where files of rows that do not fit go; "" when such a row fails the task."""
    rules: tuple[Rule, ...] = ()
    """What rows are held against; they come with a column of bits then (`judging.BROKEN`)."""
    storage: Storage = FROM_ENVIRONMENT
    """How both directories are reached."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one task wrote. Uncommitted: only what the driver is told of counts."""

    files: tuple[WrittenFile, ...] = ()
    rows: int = 0
    dead_files: tuple[WrittenFile, ...] = ()
    dead: int = 0
    dropped: int = 0
    """Rows that a rule left out without a letter of this table."""
    broken: tuple[int, ...] = ()
    """Rows that broke each rule of the plan."""
    sent: int = 0
    """Rows that a rule left out after their source had sent them to its own dead letters."""


class RollingFiles:
    """The open files of a task, one for each partition that rows have come for lately."""

    def __init__(
        self,
        shape: FileShape,
        schema: pa.Schema,
        partition: Sequence[PartitionField] = (),
        *,
        keeps: bool = True,
        within: Mapping[str, str | None] | None = None,
    ) -> None:
        """Rows are split by `partition`, its columns stay in the files if it `keeps` them; or all are `within` one."""
        self._shape = shape
        self._partition = tuple(partition)
        self._within = within or {}
        left_out = set() if keeps else {field.column for field in partition}
        self._schema = pa.schema([field for field in schema if field.name not in left_out])
        self._open: OrderedDict[tuple[str | None, ...], GrowingFile] = OrderedDict()
        self._number = 0
        self._done: list[WrittenFile] = []
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._held_bytes_max = min(HELD_BYTES_MAX, max(HELD_BYTES_MIN, shape.target_bytes))

    def add(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows == 0:
            return
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= self._held_bytes_max:
            self.flush()

    def flush(self) -> None:
        """Writes the rows held."""
        held, self._held, self._held_bytes = self._held, [], 0
        if not held:
            return
        for values, rows in by_partition(pa.Table.from_batches(held), self._partition):
            for part in self._parts(rows.select(self._schema.names)):
                self._write(values or self._within, part)

    def finish(self) -> tuple[WrittenFile, ...]:
        """Every file, whole. The task's last call."""
        self.flush()
        for key in list(self._open):
            self._close(key)
        return tuple(self._done)

    def drop(self) -> None:
        """The task failed: files that are open go. Whole ones stay; what nobody commits, a clean-up removes later."""
        for file in self._open.values():
            file.drop()
        self._open.clear()

    def _parts(self, rows: pa.Table) -> Iterable[pa.Table]:
        """Row groups no larger than what may be held: one RecordBatch can be larger than that."""
        pieces = max(1, -(-rows.nbytes // self._held_bytes_max))
        step = max(1, -(-rows.num_rows // pieces))
        return (rows.slice(start, step) for start in range(0, rows.num_rows, step))

    def _write(self, values: Mapping[str, str | None], rows: pa.Table) -> None:
        key = tuple(values.values())
        file = self._open.get(key)
        if file is None:
            if len(self._open) >= OPEN_FILES_MAX:
                self._close(next(iter(self._open)))
            file = GrowingFile(self._shape, self._number, self._schema, values)
            self._number += 1
            self._open[key] = file
        self._open.move_to_end(key)
        try:
            size = file.write(rows)
        except BaseException:
            del self._open[key]
            raise
        if size >= self._shape.target_bytes:
            self._close(key)

    def _close(self, key: tuple[str | None, ...]) -> None:
        self._done.append(self._open.pop(key).finish())


def write_rows(batches: Iterable[pa.RecordBatch], plan: WritePlan, *, attempt: str, query: str, batch: int) -> Written:
    """All rows of one task. `attempt` is a name that no other attempt of any task has."""
    shape = FileShape(plan.directory, f"part-{attempt}", plan.compression, plan.target_bytes, plan.storage)
    files = RollingFiles(shape, plan.fit.files, plan.partition, keeps=plan.keeps_partition_columns)
    dead = _DeadFiles(plan, attempt, query, batch)
    rows = dropped = sent = 0
    broken = (0,) * len(plan.rules)
    try:
        for each in batches:
            if plan.rules:
                judged = judge_rows(each, plan.rules)
                each, dropped, sent = judged.rows, dropped + judged.dropped, sent + judged.sent
                broken = tuple(map(sum, zip(broken, judged.broken, strict=True)))
                dead.add(list(judged.dead))
            fitted, unfit = fit_rows(each, plan.fit, plan.partition)
            rows += fitted.num_rows
            files.add(fitted)
            dead.add(unfit)
        return Written(files.finish(), rows, dead.finish(), dead.count, dropped, broken, sent)
    except BaseException:
        files.drop()
        dead.files.drop()
        raise


class _DeadFiles:
    """Files of rows that do not fit; none is made while every row does."""

    def __init__(self, plan: WritePlan, attempt: str, query: str, batch: int) -> None:
        shape = FileShape(plan.dead_directory, f"part-{attempt}", plan.compression, plan.target_bytes, plan.storage)
        self.files = RollingFiles(shape, DEAD_ROWS)
        self.count = 0
        self._directory = plan.dead_directory
        self._where = (plan.table, query, batch)

    def add(self, unfit: list[Unfit]) -> None:
        if unfit and not self._directory:
            raise RowUnfit(
                f"a row cannot enter the table {self._where[0]}: {unfit[0].error}. Change the query, or set "
                f"deadLetters=table:PATH so that such rows go there and the query goes on. The row: {unfit[0].row[:99]}"
            )
        for start in range(0, len(unfit), DEAD_ROWS_HELD_MAX):
            self._add(unfit[start : start + DEAD_ROWS_HELD_MAX])

    def _add(self, unfit: list[Unfit]) -> None:
        self.count += len(unfit)
        lines = [(*self._where, each.column, each.error, each.row) for each in unfit]
        columns = [
            pa.array(values, field.type) for values, field in zip(zip(*lines, strict=True), DEAD_ROWS, strict=True)
        ]
        self.files.add(pa.RecordBatch.from_arrays(columns, schema=DEAD_ROWS))

    def finish(self) -> tuple[WrittenFile, ...]:
        return self.files.finish()
