"""SQL with DuckDB sees the tables as they are, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.spark.asking import ask_spark
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.query import SqlRefused, ask_duckdb, dataset_of, named_in
from penstock.spark.lake.store import TableStore
from penstock.spark.lake.warehouse import NoSuchTable, TableName, Warehouse
from tests.unit.spark.lake.tables import SCHEMA, append, made, rows, written

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def partitioned(path: Path, table_format: str) -> TableStore:
    """Rows of three countries, one of which is not known, whose files are not where their partition says."""
    store = made(path, table_format, partition_by=["country"])
    for batch, country in enumerate(("is", "de", None)):
        file = written(store, rows(batch * 10, batch * 10 + 10, country=country), {"country": country})
        append(store, batch * 10, batch * 10 + 10, batch=batch, files=[file])
        store.refresh()
    return store


def ask(path: Path, sql: str, **options: Any) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = ask_duckdb(Warehouse(str(path)), sql, **options).rows.to_pylist()
    return answer


@FORMATS
def test_partition_values_are_the_tables(tmp_path: Path, table_format: str) -> None:
    partitioned(tmp_path / "clicks", table_format)
    sql = "select country, count(*) c, min(n) n from clicks group by country order by n"
    assert ask(tmp_path, sql) == [
        {"country": "is", "c": 10, "n": 0},
        {"country": "de", "c": 10, "n": 10},
        {"country": None, "c": 10, "n": 20},
    ]
    assert ask(tmp_path, "select n from clicks where country = 'de' and n > 17 order by n") == [{"n": 18}, {"n": 19}]
    assert ask(tmp_path, "select count(*) c from Clicks where country is null") == [{"c": 10}]
    assert (
        ask(tmp_path, 'select max("at") at_most from clicks')[0]["at_most"].isoformat() == "2026-01-01T12:00:29+00:00"
    )


@FORMATS
def test_columns_that_old_files_lack_are_null_and_narrow_ones_are_wide(tmp_path: Path, table_format: str) -> None:
    old = pa.schema([("n", pa.int64()), ("s", pa.struct([("a", pa.int32())]))])
    store = made(tmp_path / "clicks", table_format, schema=old)
    append(store, 0, 1, batch=0, files=[written(store, pa.table({"n": [1], "s": [{"a": 1}]}, schema=old))])
    store.refresh()
    new = pa.schema([*old, ("more", pa.string())])
    store.evolve(new)
    store.refresh()
    file = written(store, pa.table({"n": [2], "s": [None], "more": ["x"]}, schema=new))
    append(store, 1, 2, batch=1, files=[file])
    assert ask(tmp_path, "select * from clicks order by n") == [
        {"n": 1, "s": {"a": 1}, "more": None},
        {"n": 2, "s": None, "more": "x"},
    ]


def test_tables_are_joined_across_formats_and_namespaces(tmp_path: Path) -> None:
    from penstock.spark.lake.opening import open_store

    partitioned(tmp_path / "clicks", "delta")
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    options = {"table.format": "iceberg", "catalog": catalog, "table": "web.hits", "path": str(tmp_path / "hits")}
    hits = open_store(LakeOptions.of(options))
    hits.create(SCHEMA, [])
    append(hits, 5, 8, batch=0)
    assert ask(tmp_path, "select count(*) c from clicks join web.hits using (n)") == [{"c": 3}]


@FORMATS
def test_a_table_without_rows_has_columns(tmp_path: Path, table_format: str) -> None:
    made(tmp_path / "clicks", table_format)
    answer = ask_duckdb(Warehouse(str(tmp_path)), "select n, word from clicks")
    assert answer.rows.schema.names == ["n", "word"]
    assert answer.rows.num_rows == 0


def test_only_so_many_rows_are_fetched(tmp_path: Path) -> None:
    partitioned(tmp_path / "clicks", "delta")
    answer = ask_duckdb(Warehouse(str(tmp_path)), "select n from clicks order by n", limit=3)
    assert (answer.rows.column("n").to_pylist(), answer.more) == ([0, 1, 2], True)
    whole = ask_duckdb(Warehouse(str(tmp_path)), "select n from clicks", limit=30)
    assert (whole.rows.num_rows, whole.more) == (30, False)


def test_a_wrong_table_brings_the_nearest(tmp_path: Path) -> None:
    made(tmp_path / "clicks", "delta")
    with pytest.raises(NoSuchTable, match=r"no table clikcs .* did you mean clicks\?"):
        ask(tmp_path, "select * from clikcs")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select * form clicks", "LINE 1: select \\* form clicks"),
        ("select nothing from clicks", 'column "nothing" not found'),
        ("copy clicks to '/tmp/stolen.csv'", "COPY is refused"),
        ("attach '/tmp/other.db'", "ATTACH is refused"),
        ("insert into clicks values (1)", "changes nothing: INSERT is refused"),
        ("set enable_external_access = true", "SET is refused"),
        ("select 1; select 2", "one statement is wanted, this has 2"),
        ("select * from read_text('/etc/hostname')", "disabled by configuration"),
    ],
)
def test_sql_that_cannot_be_is_refused_with_the_place(tmp_path: Path, sql: str, said: str) -> None:
    made(tmp_path / "clicks", "delta")
    with pytest.raises(SqlRefused, match=said):
        ask(tmp_path, sql)


@pytest.mark.parametrize("sql", ["drop table clicks", "from a insert into b select *", "-- select\ncreate table x", ""])
def test_spark_is_not_given_commands(tmp_path: Path, sql: str) -> None:
    with pytest.raises(SqlRefused, match="reads"):
        ask_spark(Warehouse(str(tmp_path)), sql)


def test_only_tables_that_the_text_names_are_opened() -> None:
    tables = [TableName(name, "delta", "", LakeOptions()) for name in ("orders", "shop.orders", "my-table", "order")]

    def names(sql: str) -> list[str]:
        return [each.name for each in named_in(sql, tables)]

    assert names("select * from ORDERS o") == ["orders"]
    assert names('select * from shop.orders, "my-table"') == ["shop.orders", "my-table"]
    assert names("select 1") == []


@FORMATS
def test_the_dataset_prunes_files_of_other_partitions(tmp_path: Path, table_format: str) -> None:
    import pyarrow.dataset as ds

    store = partitioned(tmp_path / "clicks", table_format)
    found = dataset_of(store)
    assert found.count_rows() == 30
    assert found.to_table(filter=ds.field("country") == "is").num_rows == 10
    if table_format == "delta":
        assert len(list(found.get_fragments(filter=ds.field("country") == "is"))) == 1
