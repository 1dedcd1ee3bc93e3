"""Tables for tests: rows written as tasks write them, committed as the sink commits them."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import BatchCommit, Commit, TableStore, WrittenFile

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)

SCHEMA = pa.schema(
    [("n", pa.int64()), ("word", pa.string()), ("at", pa.timestamp("us", "UTC")), ("country", pa.string())]
)


def opened(path: Path, table_format: str = "iceberg", **options: str) -> TableStore:
    return open_store(
        LakeOptions.of({"path": str(path), "table.format": table_format, **{_dots(k): v for k, v in options.items()}})
    )


def _dots(name: str) -> str:
    return name.replace("_", ".")


def made(
    path: Path, table_format: str = "iceberg", partition_by: Sequence[str] = (), schema: pa.Schema = SCHEMA
) -> TableStore:
    store = opened(path, table_format)
    store.create(schema, partition_by)
    store.refresh()
    return store


def rows(start: int, end: int, *, country: str | None = "is", day: int = 0) -> pa.Table:
    numbers = range(start, end)
    return pa.table(
        {
            "n": list(numbers),
            "word": [f"w{n}" for n in numbers],
            "at": [NOON + dt.timedelta(days=day, seconds=n) for n in numbers],
            "country": [country] * len(numbers),
        },
        schema=SCHEMA,
    )


def written(store: TableStore, table: pa.Table, partition: dict[str, str | None] | None = None) -> WrittenFile:
    """A file as a task leaves it."""
    layout = store.layout()
    name = f"{uuid.uuid4()}.parquet"
    if not layout.keeps_partition_columns and partition:
        table = table.drop_columns(list(partition))
    where = Path(layout.directory) / name
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, where)
    return WrittenFile(
        name, where.stat().st_size, table.num_rows, partition or {}, f'{{"numRecords": {table.num_rows}}}'
    )


def spans(start: int, end: int, partition: int = 0, ordinal: int = 0) -> TableRange:
    return TableRange("clicks", TOPIC_ID, partition, start, end, 3, ordinal)


def append(
    store: TableStore,
    start: int,
    end: int,
    *,
    batch: int,
    query: str = "q",
    partition: int = 0,
    files: Sequence[WrittenFile] | None = None,
) -> Commit:
    """Offsets [start, end) of one partition with one row each."""
    given = tuple(files) if files is not None else (written(store, rows(start, end)),)
    return store.commit(
        BatchCommit(query, batch, (spans(start, end, partition),), given, rows=sum(each.rows for each in given))
    )


def numbers(store: TableStore) -> list[int]:
    """Column n of the newest version, in file order."""
    from penstock.spark.lake.parquet_rows import rows_of

    schema = pa.schema([store.schema().field("n")])
    found: list[int] = []
    for file in store.files():
        for batch in rows_of(file.path, schema, file.partition):
            found += batch.column(0).to_pylist()
    return found
