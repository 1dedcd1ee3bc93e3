"""Changes on their way to the tasks of their buckets: checked, reduced and told where they go. pyarrow only.

What one task has read of a key goes on as one change: a key that changes all the time fills no task of its bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.lake.keyed.buckets import bucket_of_each
from penstock.spark.lake.keyed.changes import IGNORED, KIND, SEEN, ChangeColumns
from penstock.spark.lake.keyed.merging import Pending
from penstock.spark.lake.keyed.reduction import check_whole
from penstock.spark.lake.parquet_rows import fitted

BUCKET: Final = "_bucket"
HELD_BYTES: Final = 16 << 20
"""Changes that are looked at together."""


def spread_schema(columns: ChangeColumns) -> pa.Schema:
    return pa.schema([*columns.schema, pa.field(BUCKET, pa.int32())])


def spread(batches: Iterable[pa.RecordBatch], columns: ChangeColumns, buckets: int) -> Iterator[pa.RecordBatch]:
    """Changes by their buckets; what is ignored is one row that says how many."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        given = fitted(batch, columns.schema, {})
        check_whole(given, columns)
        held.append(given)
        size += given.nbytes
        if size >= HELD_BYTES:
            yield from _sent(held, columns, buckets)
            held, size = [], 0
    yield from _sent(held, columns, buckets)


def marks(columns: ChangeColumns, buckets: Iterable[int]) -> pa.Table:
    """Changes that count for nothing and change nothing: one for each bucket that shall have a task."""
    return _nothing(columns, list(buckets), 0)


def _sent(held: list[pa.RecordBatch], columns: ChangeColumns, buckets: int) -> Iterator[pa.RecordBatch]:
    if not held:
        return
    pending = Pending(columns)
    for each in held:
        pending.add(each)
    found = pending.changes()
    numbers = bucket_of_each(found, columns.keys, buckets)
    yield from found.append_column(spread_schema(columns).field(BUCKET), numbers).combine_chunks().to_batches()
    if pending.ignored:
        yield from _nothing(columns, [0], pending.ignored).to_batches()


def _nothing(columns: ChangeColumns, buckets: list[int], seen: int) -> pa.Table:
    known = {KIND: pa.repeat(pa.scalar(IGNORED, pa.int8()), len(buckets))}
    known[SEEN] = pa.repeat(pa.scalar(seen, pa.int64()), len(buckets))
    known[BUCKET] = pa.array(buckets, pa.int32())
    wanted = spread_schema(columns)
    return pa.Table.from_arrays(
        [known.get(field.name, pa.nulls(len(buckets), field.type)) for field in wanted], schema=wanted
    )


def of_bucket(changes: pa.Table, bucket: int) -> pa.Table:
    """Of spread changes those of one bucket."""
    return changes.filter(pc.equal(changes.column(BUCKET), bucket))
