"""One bucket rewritten: its changes in, one file out. Runs in Spark's workers; pyarrow only.

Old rows pass through in batches of some megabytes, so memory is that of the bucket's changes and of a row group. Files
that are in no bucket are looked through by the tasks of all buckets, each of which takes the rows that are its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.spark.lake.keyed import graves
from penstock.spark.lake.keyed.buckets import bucket_of_each, prefix_of
from penstock.spark.lake.keyed.changes import ChangeColumns
from penstock.spark.lake.keyed.merging import BucketMerge, Pending
from penstock.spark.lake.parquet_files import FileShape, GrowingFile
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.places import opened
from penstock.spark.lake.store import MergeCounts, TableFile, WrittenFile
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

GROUP_BYTES: Final = 16 << 20
"""Rows in memory before they are written as a row group."""


@dataclass(frozen=True, slots=True)
class BucketDone:
    """What a task tells the driver. The file is uncommitted: only what the driver is told of counts."""

    bucket: int
    counts: MergeCounts
    rewritten: bool
    """False where nothing but ignored changes came: then the bucket's file stays."""
    file: WrittenFile | None = None
    """None where no row is left, and no delete to remember."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> BucketDone:
        file = given["file"]
        return cls(
            bucket=given["bucket"],
            counts=MergeCounts(**given["counts"]),
            rewritten=given["rewritten"],
            file=None if file is None else WrittenFile(**file),
        )


@dataclass(frozen=True, slots=True)
class BucketTask:
    """How buckets of one version of a table are rewritten. Made on the driver and pickled to tasks."""

    directory: str
    columns: ChangeColumns
    buckets: int
    compression: str
    now_ms: int
    """The driver's, so that a batch has one time."""
    keep_deletes_ms: int
    """0 where deletes need not be remembered."""
    of_bucket: Mapping[int, tuple[TableFile, ...]] = field(default_factory=dict)
    foreign: tuple[TableFile, ...] = ()
    storage: Storage = FROM_ENVIRONMENT
    """How the files are reached."""

    def rewrite(self, bucket: int, changes: Iterable[pa.RecordBatch]) -> BucketDone:
        """`changes` of that bucket, in any order."""
        pending = Pending(self.columns)
        for each in changes:
            pending.add(each)
        latest = pending.changes()
        ignored = MergeCounts(ignored=pending.ignored)
        if latest.num_rows == 0 and not self.foreign:
            return BucketDone(bucket, ignored, rewritten=False)
        merge = BucketMerge(latest, self._graves(bucket), self.columns)
        file = self._written(bucket, merge)
        return BucketDone(bucket, merge.counts.plus(ignored), rewritten=True, file=file)

    def _written(self, bucket: int, merge: BucketMerge) -> WrittenFile | None:
        prefix = prefix_of(bucket, self.buckets, uuid.uuid4().hex)
        shape = FileShape(self.directory, prefix, self.compression, 1 << 62, self.storage)
        growing = GrowingFile(shape, 0, self.columns.rows, {})
        try:
            rows = 0
            for group in _in_groups(merge.pass_by(self._rows(bucket))):
                growing.write(group)
                rows += group.num_rows
            live, died = merge.end(self.now_ms)
            remembered = died if self.keep_deletes_ms else died.slice(0, 0)
            if live.num_rows:
                growing.write(live)
            if rows + live.num_rows + remembered.num_rows == 0:
                growing.drop()
                return None
            growing.note(graves.encode(remembered))
        except BaseException:
            growing.drop()
            raise
        return growing.finish()

    def _rows(self, bucket: int) -> Iterator[pa.RecordBatch]:
        for file in self.of_bucket.get(bucket, ()):
            yield from rows_of(file.path, self.columns.rows, file.partition, self.storage)
        for file in self.foreign:
            for batch in rows_of(file.path, self.columns.rows, file.partition, self.storage):
                own = pc.equal(bucket_of_each(batch, self.columns.keys, self.buckets), bucket)
                yield batch.filter(own)

    def _graves(self, bucket: int) -> pa.Table:
        """Those that are young enough, of whatever files the bucket's rows are in now."""
        found = [graves.schema_of(self.columns).empty_table()]
        if self.keep_deletes_ms:
            found += [graves_in(file.path, self.columns, self.storage) for file in self.of_bucket.get(bucket, ())]
            for file in self.foreign:
                there = graves_in(file.path, self.columns, self.storage)
                found.append(there.filter(pc.equal(bucket_of_each(there, self.columns.keys, self.buckets), bucket)))
        return graves.young(pa.concat_tables(found), self.now_ms - self.keep_deletes_ms)


def graves_in(path: str, columns: ChangeColumns, storage: Storage) -> pa.Table:
    """The deletes that a file remembers."""
    files, bare = opened(path, storage)
    with pq.ParquetFile(bare, filesystem=files) as file:
        return graves.decode(file.metadata.metadata, columns)


def _in_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
