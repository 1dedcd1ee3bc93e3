"""Columns of a batch and of a table; rows that do not fit."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from penstock.spark.errors import BadOption
from penstock.spark.lake.evolution import Fit, Misfit, needs, plain, plan_fit
from penstock.spark.lake.fitting import fit_rows
from penstock.spark.lake.store import CannotEvolve
from tests.unit.spark.lake.queries import Query, numbers

INT = pa.schema([("n", pa.int32())])
LONG = pa.schema([("n", pa.int64())])


def fit(batch: pa.Schema, table: pa.Schema | None, *, widen: bool = False, add: bool = True) -> Fit:
    return plan_fit(plain(batch), table, can_widen=lambda have, wanted: widen, add=add)


def test_a_new_table_is_what_the_batch_is() -> None:
    batch = pa.schema([pa.field("n", pa.int64(), nullable=False), ("t", pa.timestamp("ms", "Europe/Berlin"))])
    wanted = pa.schema([("n", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    assert fit(batch, None) == Fit((0, 1), wanted, wanted, ())


def test_columns_meet_by_name_whatever_their_order_and_case() -> None:
    table = pa.schema([("a", pa.int64()), ("B", pa.string()), ("gone", pa.int8())])
    found = fit(pa.schema([("b", pa.string()), ("A", pa.int64())]), table)
    assert (found.files, found.table) == (pa.schema([("B", pa.string()), ("a", pa.int64())]), table)


def test_new_columns_are_added_at_the_end_unless_none_may_be() -> None:
    batch = pa.schema([("new", pa.string()), ("n", pa.int64())])
    assert fit(batch, LONG).table == pa.schema([("n", pa.int64()), ("new", pa.string())])
    strict = fit(batch, LONG, add=False)
    assert (strict.files, strict.misfits) == (LONG, (Misfit("new", pa.string(), None),))


def test_a_narrower_column_is_written_as_the_table_has_it() -> None:
    pairs = [
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.decimal128(8, 2), pa.decimal128(10, 4)),
    ]
    for narrow, wide in pairs:
        found = fit(pa.schema([("n", narrow)]), pa.schema([("n", wide)]))
        assert (found.files.field("n").type, found.misfits) == (wide, ())


def test_a_wider_column_widens_the_table_where_its_format_can() -> None:
    assert fit(LONG, INT, widen=True) == Fit((0,), LONG, LONG, ())
    assert fit(LONG, INT) == Fit((0,), INT, INT, (Misfit("n", pa.int64(), pa.int32()),))


def test_members_of_structs_are_added_and_files_hold_them_all() -> None:
    table = pa.schema([("s", pa.struct([("a", pa.int64()), ("b", pa.string())])), ("l", pa.list_(pa.int64()))])
    batch = pa.schema([("s", pa.struct([("c", pa.int8()), ("a", pa.int32())])), ("l", pa.list_(pa.int32()))])
    whole = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.int8())])
    found = fit(batch, table)
    assert found.table == found.files == pa.schema([("s", whole), ("l", pa.list_(pa.int64()))])
    rows, unfit = fit_rows(pa.RecordBatch.from_pydict({"s": [{"a": 1, "c": 2}], "l": [[3]]}, schema=batch), found)
    assert (rows.to_pylist(), unfit) == ([{"s": {"a": 1, "b": None, "c": 2}, "l": [3]}], [])


def test_a_column_of_nulls_alone_is_left_out() -> None:
    assert fit(pa.schema([("n", pa.int64()), ("void", pa.null())]), None).files == LONG
    with pytest.raises(CannotEvolve, match="no column with values"):
        fit(pa.schema([("void", pa.null())]), None)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(BadOption, match="two columns called N"):
        fit(pa.schema([("n", pa.int64()), ("N", pa.int64())]), None)


def test_a_column_that_must_not_be_null_must_be_there() -> None:
    with pytest.raises(CannotEvolve, match="key may not be null"):
        fit(LONG, pa.schema([("n", pa.int64()), pa.field("key", pa.string(), nullable=False)]))


def test_needs_says_what_a_table_lacks() -> None:
    assert needs(LONG, LONG) == []
    assert needs(INT, pa.schema([("n", pa.int64()), ("m", pa.string())])) == [
        pa.field("n", pa.int64()),
        pa.field("m", pa.string()),
    ]
    listed = pa.schema([("l", pa.list_(pa.field("element", pa.int8())))])
    assert needs(listed, pa.schema([("l", pa.list_(pa.int8()))])) == []


@pytest.mark.parametrize(
    ("batch", "table", "values", "kept"),
    [
        (pa.int64(), pa.int32(), [1, 1 << 40, None, -5, -(1 << 40)], [1, None, -5]),
        (pa.float64(), pa.float32(), [0.5, 0.1, None], [0.5, None]),
        (pa.float64(), pa.int64(), [2.0, 2.5, None], [2, None]),
        (pa.decimal128(10, 2), pa.decimal128(4, 2), [decimal.Decimal("1.25"), decimal.Decimal("123.45")], ["1.25"]),
        (pa.string(), pa.int64(), ["1", None], [None]),
        (pa.struct([("a", pa.int8())]), pa.string(), [{"a": 1}, None], [None]),
    ],
)
def test_each_row_fits_by_its_value(batch: pa.DataType, table: pa.DataType, values: list[Any], kept: list[Any]) -> None:
    found = fit(pa.schema([("n", batch)]), pa.schema([("n", table)]))
    rows, unfit = fit_rows(pa.RecordBatch.from_arrays([pa.array(values, batch)], ["n"]), found)
    told = [str(value) if isinstance(value, decimal.Decimal) else value for value in rows.column("n").to_pylist()]
    assert (told, len(unfit)) == (kept, len(values) - len(kept))
    assert rows.schema == found.files
    assert all(f"n is {batch} and the table has {table}" in each.error for each in unfit)


def test_a_row_that_does_not_fit_is_told_whole() -> None:
    schema = pa.schema(
        [("n", pa.int64()), ("b", pa.binary()), ("t", pa.timestamp("us", "UTC")), ("d", pa.decimal128(4, 1))]
    )
    found = fit(schema, pa.schema([*INT, *list(schema)[1:]]))
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    row = {"n": 1 << 33, "b": b"\xff", "t": when, "d": decimal.Decimal("1.5")}
    _, [unfit] = fit_rows(pa.RecordBatch.from_pylist([row], schema=schema), found)
    assert json.loads(unfit.row) == {"n": 1 << 33, "b": "/w==", "t": "2026-01-01T00:00:00+00:00", "d": "1.5"}
    assert unfit.error.endswith("8589934592 does not fit")


def played(query: Query, batch_id: int, rows: Mapping[str, Sequence[Any]]) -> None:
    query.writer().commit([query.written(rows)], batch_id)


def test_a_query_with_a_new_column_goes_on_in_the_same_table(tmp_path: Path) -> None:
    table = tmp_path / "table"
    narrow = Query(tmp_path, table)
    narrow.reads(0, 2, starts=[0])
    narrow.run(0, [0, 1])
    wide = Query(tmp_path, table, schema=pa.schema([("word", pa.string()), ("n", pa.int32())]))
    wide.reads(0, 3, starts=[2])
    played(wide, 0, {"word": ["x"], "n": [2]})
    narrow.reads(1, 4, starts=[3])
    narrow.run(1, [3])
    assert (numbers(table), numbers(table, "word")) == ([0, 1, 2, 3], ["x", None, None, None])
    assert wide.store.schema() == pa.schema([("n", pa.int64()), ("word", pa.string())])


def test_evolution_may_be_forbidden(tmp_path: Path) -> None:
    query = Query(tmp_path, tmp_path / "t")
    query.reads(0, 1, starts=[0])
    query.run(0, [0])
    wide = pa.schema([("n", pa.int64()), ("word", pa.string())])
    with pytest.raises(CannotEvolve, match=r"word is string and the table has no such column.*schema\.evolution=add"):
        Query(tmp_path, tmp_path / "t", schema=wide, schema_evolution="none").writer()


def test_a_wider_type_fails_before_a_row_is_written_and_says_what_to_do(tmp_path: Path) -> None:
    table = tmp_path / "table"
    query = Query(tmp_path, table, schema=INT)
    query.reads(0, 1, starts=[0])
    query.run(0, [0])
    before = sorted(table.rglob("*"))
    with pytest.raises(CannotEvolve) as refused:
        Query(tmp_path, table, schema=LONG).writer()
    assert "n is int64 and the table has int32" in str(refused.value)
    assert "Cast the column in the query, or set deadLetters=table:PATH" in str(refused.value)
    assert sorted(table.rglob("*")) == before


def test_rows_that_do_not_fit_go_to_dead_letters_once_and_the_query_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, dead = tmp_path / "table", tmp_path / "dead"
    query = Query(tmp_path, table, schema=INT)
    query.reads(0, 1, starts=[0])
    query.run(0, [0])
    wide = Query(tmp_path, table, schema=LONG, deadLetters=f"table:{dead}", rows="record")
    wide.reads(0, 4, starts=[1])
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            wide.run(0, [1, 1 << 40, 3])
    wide.reads(1, 5)
    wide.run(1, [4])
    assert numbers(table) == [0, 1, 3, 4]
    letters = pl.read_delta(str(dead)).to_dicts()
    assert [(each["table"], each["batch"], each["column"], each["row"]) for each in letters] == [
        (str(table), -1, "n", '{"n": 1099511627776}')
    ]
    commits = [each for each in wide.store.commits() if each.query_id == wide.id]
    assert [(each.rows, each.dead, each.ranges[0].end) for each in commits] == [(2, 1, 4), (1, 0, 5)]


def test_a_crash_between_dead_letters_and_the_batch_doubles_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.spark.lake.delta.store import DeltaStore

    table, dead = tmp_path / "table", tmp_path / "dead"
    query = Query(tmp_path, table, schema=INT)
    query.reads(0, 1, starts=[0])
    query.run(0, [0])
    wide = Query(tmp_path, table, schema=LONG, deadLetters=f"table:{dead}")
    wide.reads(0, 3, starts=[1])
    real = DeltaStore.commit

    def dies(store: DeltaStore, batch: Any) -> Any:
        if store.location == str(table):
            raise ConnectionError("killed")
        return real(store, batch)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaStore, "commit", dies)
        with pytest.raises(ConnectionError):
            wide.run(0, [1, 1 << 40])
    wide.run(0, [1, 1 << 40])
    assert numbers(table) == [0, 1]
    assert len(numbers(dead, "row")) == 1
