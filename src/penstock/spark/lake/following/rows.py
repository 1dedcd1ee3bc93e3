"""What a task of a followed table gives: rows of files, and beside them what became of them. pyarrow alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.spark.errors import DataLost
from penstock.spark.lake.following.parts import VersionPart
from penstock.spark.lake.following.versions import CHANGE, INSERT, VERSION
from penstock.spark.lake.parquet_rows import rows_of


def rows_of_part(part: VersionPart, schema: pa.Schema, *, changes: bool) -> Iterator[pa.RecordBatch]:
    """Batches of `schema`, which has the two columns of changes at its end where they are asked for."""
    plain = pa.schema([field for field in schema if not changes or field.name not in (CHANGE, VERSION)])
    try:
        if part.removed:
            from penstock.spark.lake.following.differences import differences

            for word, rows in differences(part.removed, part.files, plain, part.keys, part.storage):
                yield _with_change(rows, word, part.version, schema)
            return
        for file in part.files:
            for rows in rows_of(file.path, plain, file.partition, part.storage):
                yield _with_change(rows, INSERT, part.version, schema) if changes else rows
    except FileNotFoundError as missing:
        raise DataLost(
            f"a file of version {part.version} is gone ({missing}): the table was compacted or overwritten since, and "
            "its old files were cleaned up before the stream had them. Keep them longer (history.keep.days of this "
            "stream), and begin anew: without its checkpoint the stream has all rows that are there"
        ) from missing


def _with_change(rows: pa.RecordBatch, word: str, version: int, schema: pa.Schema) -> pa.RecordBatch:
    columns = [*rows.columns, pa.repeat(word, rows.num_rows), pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
