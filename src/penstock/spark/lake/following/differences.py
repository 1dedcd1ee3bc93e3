"""What became of each row in a version that took rows away: files before against files after, row by row.

A version that merges or deletes writes files anew, most of whose rows are as they were. DuckDB takes the two bags from
each other, on disk where they are large. With the table's keys a row that went and came again under its key is an
update; without them it is a delete and an insert.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.spark.lake.following.versions import DELETE, INSERT, UPDATE
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.store import TableFile
from penstock.spark.stores.storage import Storage

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_MOST: Final = "256MB"
_BATCH_ROWS: Final = 65_536


def differences(
    removed: Sequence[TableFile], added: Sequence[TableFile], rows: pa.Schema, keys: Sequence[str], storage: Storage
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Batches of `rows`, each with what became of them."""
    with tempfile.TemporaryDirectory(prefix="penstock-differences-") as folder, _engine(folder) as engine:
        for name, files in (("before", removed), ("after", added)):
            engine.register(f"{name}_rows", _reader(files, rows, storage))
            engine.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_rows")
        for name, one, other in (("came", "after", "before"), ("went", "before", "after")):
            engine.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}")
        yield from _told(engine, rows, keys)


def _engine(folder: str) -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"memory_limit": MEMORY_MOST, "temp_directory": folder, "threads": 1})


def _told(engine: DuckDBPyConnection, rows: pa.Schema, keys: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    same = " AND ".join(f'a."{key}" IS NOT DISTINCT FROM b."{key}"' for key in keys)
    again = f"EXISTS (SELECT 1 FROM {{0}} b WHERE {same})" if keys else "false"
    parts = (
        (DELETE, f"SELECT * FROM went a WHERE NOT {again.format('came')}"),
        (UPDATE, f"SELECT * FROM came a WHERE {again.format('went')}"),
        (INSERT, f"SELECT * FROM came a WHERE NOT {again.format('went')}"),
    )
    for word, sql in parts:
        answered = engine.sql(sql)
        reader = getattr(answered, "to_arrow_reader", None) or answered.fetch_arrow_reader
        for batch in reader(_BATCH_ROWS):
            yield word, batch.cast(rows)


def _reader(files: Sequence[TableFile], rows: pa.Schema, storage: Storage) -> pa.RecordBatchReader:
    batches = (batch for file in files for batch in rows_of(file.path, rows, file.partition, storage))
    return pa.RecordBatchReader.from_batches(rows, batches)
