"""Rows of Parquet files, with the table's columns whatever the file has. pyarrow, no Spark, no format library.

A file that is older than a column has none of it: null. A column that the file has in a narrower type is widened. What
Delta keeps in its log alone, the values of partition columns, comes in with the file. Columns are found by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.spark.lake.places import absolute, opened
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

BATCH_BYTES: Final = 4 << 20
_BATCH_ROWS: Final = (1_024, 131_072)
"""Fewest and most rows of a batch, whatever they weigh."""
_ROW_GROUP_BYTES: Final = 64 << 20


def rows_of(
    path: str,
    schema: pa.Schema,
    partition: Mapping[str, str | None] | None = None,
    storage: Storage = FROM_ENVIRONMENT,
) -> Iterator[pa.RecordBatch]:
    """The rows of one file in batches of `schema`, of some megabytes; columns that `schema` lacks are not read."""
    files, bare = opened(absolute(path), storage)
    with pq.ParquetFile(files.open_input_file(bare), pre_buffer=True) as file:
        there = set(file.schema_arrow.names)
        columns = [name for name in schema.names if name in there]
        for batch in file.iter_batches(batch_size=_batch_rows(file.metadata), columns=columns):
            yield fitted(batch, schema, partition or {})


def _batch_rows(footer: pq.FileMetaData) -> int:
    whole_bytes = sum(footer.row_group(number).total_byte_size for number in range(footer.num_row_groups))
    fewest, most = _BATCH_ROWS
    return min(max(int(BATCH_BYTES * footer.num_rows // max(whole_bytes, 1)), fewest), most)


def fitted(batch: pa.RecordBatch, schema: pa.Schema, partition: Mapping[str, str | None]) -> pa.RecordBatch:
    """`batch` with exactly the columns of `schema`: cast, from the partition, or null."""
    columns = []
    for field in schema:
        if field.name in batch.schema.names:
            column = batch.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(constant(partition.get(field.name), field.type, batch.num_rows))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def constant(text: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """A partition's value, which table logs keep as text, once for every row."""
    return pa.repeat(partition_value(text, kind), rows)


def partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        # "2026-01-01 10:00:00" or ISO with a zone; without one it is UTC, as Delta's protocol has it.
        bare = text.removesuffix("Z").replace("T", " ").removesuffix("+00:00")
        return pa.scalar(bare).cast(pa.timestamp("us")).cast(pa.timestamp(kind.unit, kind.tz))
    if pa.types.is_binary(kind):
        return pa.scalar(text.encode(), kind)
    return pa.scalar(text).cast(kind)


def rewrite(
    paths: Sequence[str], target: str, schema: pa.Schema, compression: str, storage: Storage = FROM_ENVIRONMENT
) -> int:
    """Writes the rows of several files into one, in their order, holding a row group at most; returns their number."""
    files, bare = opened(absolute(target), storage)
    rows = 0
    with (
        files.open_output_stream(bare) as stream,
        pq.ParquetWriter(stream, schema, compression=compression) as writer,
    ):
        batches = (batch for path in paths for batch in rows_of(path, schema, storage=storage))
        for group in _groups(batches, _ROW_GROUP_BYTES):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def _groups(batches: Iterable[pa.RecordBatch], group_bytes: int) -> Iterator[pa.Table]:
    """Batches together until they are a row group: one that is too small reads and compresses badly."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= group_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)
