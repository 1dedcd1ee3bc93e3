"""Rows out into files: partitions, sizes, bounds, full disks."""

from __future__ import annotations

import datetime as dt
import json
import random
import resource
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.spark.errors import BadOption
from penstock.spark.lake import writing
from penstock.spark.lake.evolution import plan_fit
from penstock.spark.lake.parquet_files import DiskFull
from penstock.spark.lake.partitioning import PartitionField, by_partition, check_fields, directory_of
from penstock.spark.lake.store import WrittenFile
from penstock.spark.lake.writing import RowUnfit, WritePlan, Written, write_rows
from tests.patience import within

ODD = ["a b:%/é#?", None, "x=y", "..", "a\\b\"c'\n\t*", "日本", "{}[]^|", "%41"]


def plan(
    path: Path, schema: pa.Schema, partition: Sequence[str] = (), target: int = 1 << 20, **named: Any
) -> WritePlan:
    fit = plan_fit(schema, None, can_widen=lambda have, wanted: False, add=True)
    fields = tuple(PartitionField.of(text) for text in partition)
    return WritePlan("t", str(path), fit, fields, named.pop("keeps", False), "zstd", target, **named)


def wrote(given: WritePlan, *batches: pa.RecordBatch, attempt: str = "a") -> Written:
    return write_rows(batches, given, attempt=attempt, query="q", batch=0)


def read(path: Path, file: WrittenFile) -> list[dict[str, Any]]:
    return list(pq.ParquetFile(path / file.path).read().to_pylist())


def test_each_partition_has_its_directory_and_files_without_its_columns(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"n": list(range(16)), "p": ODD * 2})
    found = wrote(plan(tmp_path, batch.schema, ["p"]), batch)
    assert {each.partition["p"]: [row["n"] for row in read(tmp_path, each)] for each in found.files} == {
        value: [number, number + 8] for number, value in enumerate(ODD)
    }
    assert "p=__HIVE_DEFAULT_PARTITION__/part-a-c" in " ".join(each.path for each in found.files)
    assert all(pq.read_schema(tmp_path / each.path).names == ["n"] for each in found.files)
    assert sum(each.size_bytes for each in found.files) == sum(
        file.stat().st_size for file in tmp_path.rglob("*.parquet")
    )


def test_partition_values_are_the_text_that_tables_have() -> None:
    when = dt.datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=dt.UTC)
    table = pa.table(
        {
            "t": pa.array([when], pa.timestamp("us", "UTC")),
            "d": [when.date()],
            "b": [True],
            "i": [7],
            "m": pa.array([1], pa.decimal128(6, 2)),
        }
    )
    fields = [
        PartitionField.of(text) for text in ("t", "d", "b", "i", "m", "hour(t)", "day( t )", "month(t)", "year(t)")
    ]
    [(values, _)] = by_partition(table, fields)
    assert values == {
        "t": "2026-01-02 03:04:05.000600",
        "d": "2026-01-02",
        "b": "true",
        "i": "7",
        "m": "1.00",
        "t_hour": "2026-01-02-03",
        "t_day": "2026-01-02",
        "t_month": "2026-01",
        "t_year": "2026",
    }
    assert (
        directory_of({"t": values["t"], "x": None}) == "t=2026-01-02 03%3A04%3A05.000600/x=__HIVE_DEFAULT_PARTITION__"
    )


def test_many_columns_of_many_values_are_told_apart() -> None:
    count = 3000
    table = pa.table({f"c{column}": [(row * (column + 7)) % count for row in range(count)] for column in range(8)})
    seen = list(by_partition(table, [PartitionField(name) for name in table.column_names]))
    assert len(seen) == len({tuple(values.values()) for values, _ in seen}) == count


def test_what_cannot_be_a_partition_is_refused() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.binary()), ("l", pa.list_(pa.int8()))])
    for name, said in (("x", "not a column"), ("b", "binary"), ("l", "plain values")):
        with pytest.raises(BadOption, match=said):
            check_fields([PartitionField(name)], schema)
    with pytest.raises(BadOption, match="every column"):
        check_fields([PartitionField("a")], pa.schema([("a", pa.int64())]))
    with pytest.raises(BadOption, match="one of day, hour, month, year"):
        PartitionField.of("bucket(a)")


def test_a_value_too_long_for_a_directory_is_a_dead_letter_or_fails(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "p": ["x" * 300, "y" * 240, "%" * 100]})
    with pytest.raises(RowUnfit, match="longer than a directory's name"):
        wrote(plan(tmp_path / "t", batch.schema, ["p"]), batch)
    assert list((tmp_path / "t").rglob("*.parquet")) == []
    found = wrote(plan(tmp_path / "t", batch.schema, ["p"], dead_directory=str(tmp_path / "dead")), batch)
    assert (found.rows, found.dead) == (1, 2)
    assert [row["column"] for file in found.dead_files for row in read(tmp_path / "dead", file)] == ["p", "p"]


@pytest.mark.parametrize("field", ["at", "day(at)", "hour(at)", "on"])
def test_a_time_that_no_partition_can_be_named_after_is_a_dead_letter_or_fails(tmp_path: Path, field: str) -> None:
    """Arrow counts years with 16 bits: year 294247 would be filed under 32103, and read back as that."""
    micros = [0, (1 << 63) - 1, -(1 << 63) + 1, 253_402_300_799_999_999, 253_402_300_800_000_000]
    batch = pa.RecordBatch.from_pydict(
        {
            "n": list(range(len(micros))),
            "at": pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "on": pa.array([each // 86_400_000_000 for each in micros], pa.int32()).cast(pa.date32()),
        }
    )
    with pytest.raises(RowUnfit, match="outside of the years 1 to 9999"):
        wrote(plan(tmp_path / "t", batch.schema, [field], keeps=True), batch)
    given = plan(tmp_path / "t", batch.schema, [field], keeps=True, dead_directory=str(tmp_path / "dead"))
    found = wrote(given, batch)
    assert sorted(row["n"] for file in found.files for row in read(tmp_path / "t", file)) == [0, 3]
    letters = [json.loads(row["row"]) for file in found.dead_files for row in read(tmp_path / "dead", file)]
    assert [(letter["n"], letter["at"]) for letter in letters] == [(1, micros[1]), (2, micros[2]), (4, micros[4])]


def test_files_roll_at_their_target_size(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("noise", pa.binary())])
    noise = random.Random(7)
    batches = [pa.RecordBatch.from_pydict({"n": [n], "noise": [noise.randbytes(40_000)]}, schema) for n in range(30)]
    found = wrote(plan(tmp_path, schema, target=200_000), *batches)
    assert len(found.files) > 3
    assert all(200_000 <= each.size_bytes < 400_000 for each in found.files[:-1])
    assert [row["n"] for each in found.files for row in read(tmp_path, each)] == list(range(30))
    assert len({each.path for each in found.files}) == len(found.files)


def test_one_large_batch_becomes_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "HELD_BYTES_MAX", 1 << 16)
    batch = pa.RecordBatch.from_pydict({"n": list(range(100_000))})
    found = wrote(plan(tmp_path, batch.schema), batch)
    assert sum(each.rows for each in found.files) == 100_000
    assert pq.ParquetFile(tmp_path / found.files[0].path).num_row_groups > 5


def test_more_partitions_than_open_files_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "OPEN_FILES_MAX", 4)
    monkeypatch.setattr(writing, "HELD_BYTES_MAX", 1)
    monkeypatch.setattr(writing, "HELD_BYTES_MIN", 1)
    schema = pa.schema([("n", pa.int64()), ("p", pa.int64())])
    batches = [pa.RecordBatch.from_pydict({"n": [n, n], "p": [n % 10, 0]}, schema) for n in range(30)]
    found = wrote(plan(tmp_path, schema, ["p"]), *batches)
    seen = sorted((row["n"], each.partition["p"]) for each in found.files for row in read(tmp_path, each))
    assert seen == sorted([(n, str(n % 10)) for n in range(30)] + [(n, "0") for n in range(30)])
    assert len([each for each in found.files if each.partition["p"] == "0"]) == 1


def test_bounds_are_never_too_narrow(tmp_path: Path) -> None:
    long, when = "é" * 40, dt.datetime(2026, 1, 1, 0, 0, 0, 123_456)
    rows = {
        "i": pa.array([3, None, -1], pa.int32()),
        "f": [1.5, float("nan"), 2.0],
        "g": [1.5, None, 2.0],
        "s": ["b", long, None],
        "b": [b"x", None, b"y"],
        "t": pa.array([when.replace(tzinfo=dt.UTC)] * 3, pa.timestamp("us", "UTC")),
        "local": pa.array([when] * 3, pa.timestamp("us")),
        "d": [when.date()] * 3,
        "far": pa.array([400_000_000_000_000_000] * 3, pa.timestamp("us")),
        "none": pa.array([None] * 3, pa.string()),
        "st": [{"x": 1, "y": 2}] * 3,
        "last": [1, 2, 3],
    }
    batch = pa.RecordBatch.from_pydict(rows)
    [file] = wrote(plan(tmp_path, batch.schema), batch).files
    told = json.loads(file.stats)
    assert told["numRecords"] == 3
    assert told["minValues"] == {
        "i": -1,
        "g": 1.5,
        "s": "b",
        "t": "2026-01-01T00:00:00.123Z",
        "local": "2026-01-01 00:00:00.123",
        "d": "2026-01-01",
        "last": 1,
    }
    assert told["maxValues"] == {
        "i": 3,
        "g": 2.0,
        "s": "é" * 32 + "\U0010ffff",
        "t": "2026-01-01T00:00:00.124Z",
        "local": "2026-01-01 00:00:00.124",
        "d": "2026-01-01",
        "last": 3,
    }
    nulls = {"i": 1, "f": 0, "g": 1, "s": 1, "b": 1, "t": 0, "local": 0, "d": 0, "far": 0, "none": 3, "last": 0}
    assert told["nullCount"] == nulls


def test_times_of_any_zone_are_written_in_utc(tmp_path: Path) -> None:
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    batch = pa.RecordBatch.from_arrays([pa.array([when], pa.timestamp("us", "Etc/UTC"))], ["t"])
    given = plan(tmp_path, pa.schema([("t", pa.timestamp("us", "UTC"))]))
    [file] = wrote(given, batch).files
    assert pq.read_schema(tmp_path / file.path).field("t").type == pa.timestamp("us", "UTC")
    assert read(tmp_path, file) == [{"t": when}]


def test_a_task_that_fails_leaves_no_half_file(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64())])

    def rows() -> Any:
        yield pa.RecordBatch.from_pydict({"n": list(range(200_000))})
        raise RuntimeError("the task was killed")

    with pytest.raises(RuntimeError):
        write_rows(rows(), plan(tmp_path, schema, target=1 << 16), attempt="a", query="q", batch=0)
    assert all(pq.read_metadata(file).num_rows for file in tmp_path.rglob("*.parquet"))


_FULL = """
    import os, resource, sys, pyarrow as pa
    from pathlib import Path
    from penstock.spark.lake.parquet_files import DiskFull
    from tests.unit.spark.lake.test_writing import plan, wrote
    home = Path(sys.argv[1])
    noise = pa.RecordBatch.from_pydict({"b": [os.urandom(1 << 20) for _ in range(8)]})
    done = wrote(plan(home, noise.schema, target=1 << 30), noise.slice(0, 1), attempt="before").files
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
    try:
        wrote(plan(home, noise.schema, target=1 << 30), noise)
    except DiskFull as full:
        print(full)
    print(sorted(file.name for file in home.rglob("*.parquet")) == [done[0].path])
"""


def test_a_full_disk_is_named_and_only_the_half_file_goes(tmp_path: Path) -> None:
    """A limit on the size of files fails a write as a full disk does, without one."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_FULL), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=within(60),
        check=True,
    )
    said, alone = ran.stdout.splitlines()
    assert f"no space to write {tmp_path}/part-a-c000.zstd.parquet" in said
    assert "MiB are left there. Nothing was committed: make room" in said
    assert alone == "True"
    assert issubclass(DiskFull, Exception)
