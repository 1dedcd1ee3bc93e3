"""Rows of files as the table has them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.spark.lake.parquet_rows import partition_value, rewrite, rows_of
from penstock.spark.lake.reading import GROUP_BYTES, GROUP_BYTES_LEAST, group
from penstock.spark.lake.store import TableFile


def test_columns_are_cast_filled_and_left_out(tmp_path: Path) -> None:
    path = str(tmp_path / "old.parquet")
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int32()), "gone": ["x", "y"]}), path)
    schema = pa.schema([("day", pa.date32()), ("n", pa.int64()), ("new", pa.string())])
    (batch,) = rows_of(path, schema, {"day": "2026-01-02", "n": "9"})
    assert batch.schema == schema
    day = dt.date(2026, 1, 2)
    assert batch.to_pylist() == [{"day": day, "n": 1, "new": None}, {"day": day, "n": 2, "new": None}]


def test_batches_are_bounded_by_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "wide.parquet")
    pq.write_table(pa.table({"v": [b"x" * 10_000] * 4_000}), path, use_dictionary=False)
    counts = [batch.num_rows for batch in rows_of(path, pa.schema([("v", pa.binary())]))]
    assert sum(counts) == 4_000
    assert max(counts) == 1_024


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (None, pa.int64(), None),
        ("7", pa.int32(), 7),
        ("true", pa.bool_(), True),
        ("2026-01-02", pa.date32(), dt.date(2026, 1, 2)),
        ("1.50", pa.decimal128(5, 2), Decimal("1.50")),
        ("2026-01-02 03:04:05.000006", pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)),
        ("2026-01-02T03:04:05.000006Z", pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)),
        ("2026-01-02 03:04:05", pa.timestamp("us"), dt.datetime(2026, 1, 2, 3, 4, 5)),
        ("ü", pa.string(), "ü"),
        ("ü", pa.binary(), "ü".encode()),
    ],
)
def test_partition_values_come_back_from_text(text: str | None, kind: pa.DataType, value: Any) -> None:
    found = partition_value(text, kind)
    assert (found.type, found.as_py()) == (kind, value)


def test_files_are_rewritten_in_order_with_the_present_columns(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"n": pa.array([number * 2, number * 2 + 1], pa.int32())}), path)
    target = str(tmp_path / "whole.parquet")
    schema = pa.schema([("n", pa.int64()), ("new", pa.string())])
    assert rewrite(paths, target, schema, "zstd") == 6
    whole = pq.read_table(target)
    assert whole.schema == schema
    assert whole.column("n").to_pylist() == list(range(6))
    assert pq.ParquetFile(target).num_row_groups == 1


def files(*sizes: int) -> list[TableFile]:
    return [TableFile(f"{number:03}", size, 1) for number, size in enumerate(sizes)]


def test_tasks_get_about_the_same_bytes() -> None:
    assert group([], cores=4) == []
    assert [len(each) for each in group(files(1, 1, 1), cores=4)] == [3], "not worth more tasks than one"
    even = group(files(*[GROUP_BYTES_LEAST] * 8), cores=4)
    assert [len(each) for each in even] == [2, 2, 2, 2]
    many = group(files(*[GROUP_BYTES] * 10), cores=2)
    assert len(many) == 10
    assert len(group(files(GROUP_BYTES * 10), cores=2)) == 1, "a file is read by one task"
