"""SQL reads the tables that may be read and nothing else of the machine, however it is asked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.console.failures import Declined
from penstock.console.tables.sql.asking import SqlProcesses
from penstock.console.tables.sql.child import answered
from penstock.console.tables.sql.order import SqlAnswer, SqlOrder, SqlTold, TableOrder, table_order
from penstock.spark.lake.warehouse import Warehouse
from tests.console.lakes import commit, table_of
from tests.patience import within

SECRET = "nobody-may-read-this"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables, of which one may be asked, and secrets beside them."""
    folder = tmp_path_factory.mktemp("escapes")
    for name in ("orders", "secret"):
        commit(table_of(folder / "lake", name, name), name, "id", 0, 10, batch=0)
    (folder / "secret.txt").write_text(SECRET)
    (folder / "lake" / "secret.csv").write_text(f"a\n{SECRET}\n")
    pq.write_table(pa.table({"a": [SECRET]}), folder / "lake" / "secret.parquet")
    return folder


@pytest.fixture(scope="module")
def tables(lake: Path) -> list[TableOrder]:
    return orders_of(lake / "lake", "orders")


def orders_of(warehouse: Path, *names: str) -> list[TableOrder]:
    found = Warehouse(str(warehouse)).tables()
    return [table_order(table, str(warehouse)) for table in found if table.name in names]


def ask(sql: str, tables: list[TableOrder], seconds: int = 20, memory_mb: int = 512) -> SqlAnswer:
    order = SqlOrder(sql, tables, seconds=round(within(seconds)), memory_bytes=memory_mb << 20)
    return asyncio.run(SqlProcesses().ask("somebody", order))


def here(sql: str, tables: list[TableOrder]) -> SqlTold:
    """The same in this process: what DuckDB refuses needs no limits of the system, and a process takes long."""
    return answered(SqlOrder(sql, tables))


def refusal(sql: str, tables: list[TableOrder], seconds: int = 20) -> Declined:
    with pytest.raises(Declined) as found:
        ask(sql, tables, seconds)
    return found.value


ESCAPES = [
    "SELECT * FROM read_csv('{lake}/lake/secret.csv')",
    "SELECT * FROM read_csv_auto('{lake}/lake/secret.csv')",
    "SELECT * FROM read_text('{lake}/secret.txt')",
    "SELECT * FROM read_blob('{lake}/secret.txt')",
    "SELECT * FROM read_json('{lake}/secret.txt')",
    "SELECT * FROM read_ndjson_objects('{lake}/secret.txt')",
    "SELECT * FROM read_parquet('{lake}/lake/secret.parquet')",
    "SELECT * FROM parquet_scan('{lake}/lake/secret.parquet')",
    "SELECT * FROM parquet_metadata('{lake}/lake/secret.parquet')",
    "SELECT * FROM parquet_kv_metadata('{lake}/lake/secret/*.parquet')",
    "SELECT * FROM '{lake}/lake/secret.parquet'",
    "SELECT * FROM '{lake}/lake/secret.csv'",
    "SELECT * FROM \"{lake}/lake/secret.csv\"",
    "SELECT * FROM '/proc/self/environ'",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM sniff_csv('{lake}/lake/secret.csv')",
    "SELECT * FROM glob('{lake}/*')",
    "SELECT * FROM delta_scan('{lake}/lake/secret')",
    "SELECT * FROM iceberg_scan('{lake}/lake/secret')",
    "SELECT * FROM sqlite_scan('{lake}/lake/catalog.db', 'iceberg_tables')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "SELECT * FROM query_table('{lake}/lake/secret.parquet')",
    "SELECT * FROM orders WHERE text IN (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT getenv('HOME')",
    "SELECT * FROM secret",
    "SELECT * FROM lake.secret",
    "SELECT * FROM _penstock_1",
    "SELECT * FROM sql",
    "SELECT * FROM order",
    "SELECT * FROM order_",
    "SELECT * FROM tables",
    "SELECT * FROM connection",
    "SELECT * FROM store",
    "SELECT * FROM python_map_function(1)",
    "COPY orders TO '{lake}/out.csv'",
    "COPY (SELECT 1) TO '/tmp/penstock-out.csv'",
    "EXPORT DATABASE '{lake}/out'",
    "IMPORT DATABASE '{lake}/out'",
    "ATTACH '{lake}/other.db'",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:1'",
    "PRAGMA database_list",
    "PRAGMA enable_external_access=true",
    "SET enable_external_access = true",
    "SET GLOBAL lock_configuration = false",
    "SET temp_directory = '{lake}'",
    "RESET enable_external_access",
    "CREATE TABLE t AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE MACRO m() AS 1",
    "CALL pragma_version()",
    "INSERT INTO orders VALUES (1)",
    "DELETE FROM orders",
    "EXPLAIN ANALYZE SELECT 1",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "USE memory",
    "SELECT 1; SET enable_external_access = true; SELECT * FROM read_text('/etc/passwd')",
]  # fmt: skip


def test_the_table_itself_can_be_read(tables: list[TableOrder]) -> None:
    assert here("SELECT count(*), min(text) FROM orders", tables).rows == [["10", "secret of orders 0"]]


@pytest.mark.parametrize("sql", ESCAPES)
def test_nothing_else_can_be_read_or_written(lake: Path, tables: list[TableOrder], sql: str) -> None:
    before = sorted(lake.rglob("*"))
    told = here(sql.format(lake=lake), tables)
    assert (told.rows, bool(told.refused)) == ([], True)
    assert SECRET not in told.refused
    assert "root:" not in told.refused
    assert sorted(lake.rglob("*")) == before
    assert not Path("/tmp/penstock-out.csv").exists()


@pytest.mark.parametrize("sql", ["SELECT * FROM read_text('/etc/passwd')", "COPY orders TO '{lake}/out.csv'"])
def test_nor_in_the_process_that_answers(lake: Path, tables: list[TableOrder], sql: str) -> None:
    assert ask("SELECT count(*) FROM orders", tables).cells() == [["10"]]
    assert refusal(sql.format(lake=lake), tables).code == "sql_refused"
    assert not (lake / "out.csv").exists()


def test_settings_and_secrets_are_empty_and_stay(tables: list[TableOrder]) -> None:
    sql = """SELECT name, value FROM duckdb_settings() WHERE name IN ('enable_external_access', 'lock_configuration',
             'temp_directory', 'python_enable_replacements', 'autoload_known_extensions', 'allow_community_extensions',
             'memory_limit', 'threads') ORDER BY name"""
    told = {row[0]: row[1] for row in ask(sql, tables).cells()}
    assert (told["enable_external_access"], told["lock_configuration"], told["temp_directory"]) == ("false", "true", "")
    assert (told["python_enable_replacements"], told["autoload_known_extensions"]) == ("false", "false")
    assert (told["allow_community_extensions"], told["threads"], told["memory_limit"]) == ("false", "1", "512.0 MiB")
    assert here("SELECT * FROM duckdb_secrets()", tables).rows == []
    views = [row[0] for row in here("SELECT view_name FROM duckdb_views() WHERE NOT internal", tables).rows]
    assert "secret" not in views


def test_the_process_has_an_empty_environment(tables: list[TableOrder], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the console was started with, the process that answers has none of it."""
    monkeypatch.setenv("PENSTOCK_SECRET_OF_TESTS", SECRET)
    seen: list[bytes] = []

    async def look() -> None:
        endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
        asking = asyncio.create_task(SqlProcesses().ask("somebody", SqlOrder(endless, tables, seconds=30)))
        child: int | None = None
        deadline = time.monotonic() + within(20)
        while time.monotonic() < deadline and child is None:
            await asyncio.sleep(0)
            child = next(iter(children()), None)
        assert child is not None
        # What was given at its start is what the system shows, whatever it does to itself afterwards.
        while time.monotonic() < deadline and b"child" not in (Path(f"/proc/{child}/cmdline").read_bytes()):
            await asyncio.sleep(0)
        seen.append(Path(f"/proc/{child}/environ").read_bytes())
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not Path(f"/proc/{child}").exists(), "it ends with whoever stops waiting"

    asyncio.run(look())
    assert seen == [b""]


def children() -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"sql.child" in Path(path.parent, "cmdline").read_bytes():
            yield int(path.parent.name)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 1000000) FROM range(10000)",
        "SELECT list(range) FROM range(1000000000)",
        "SELECT count(DISTINCT a.range * 1000000 + b.range) FROM range(30000) a, range(30000) b",
        "SELECT * FROM range(100000000) a ORDER BY hash(range)",
    ],
)
def test_too_much_memory_ends_the_question_and_spills_nothing(tables: list[TableOrder], sql: str) -> None:
    assert refusal(sql, tables).code == "sql_refused"


def test_what_never_ends_is_ended(tables: list[TableOrder]) -> None:
    endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
    assert refusal(endless, tables, seconds=2).code == "sql_timed_out"


def test_an_answer_has_sixteen_megabytes_at_most(tables: list[TableOrder]) -> None:
    told = ask("SELECT repeat('é', 10000) FROM range(2000)", tables)
    assert told.cut
    size = sum(len((row[0] or "").encode()) for row in told.cells())
    assert 15 << 20 < size <= 16 << 20


def test_a_link_in_a_warehouse_leads_nowhere(tmp_path: Path) -> None:
    """Whoever can put links into a warehouse cannot have the console read what they point at."""
    warehouse, outside = tmp_path / "lake", tmp_path / "outside"
    commit(table_of(outside, "theirs", "t"), "t", "id", 0, 10, batch=0)
    commit(table_of(warehouse, "filed", "t"), "t", "id", 0, 10, batch=0)
    commit(table_of(warehouse, "logged", "t"), "t", "id", 0, 10, batch=0)
    (warehouse / "linked").symlink_to(outside / "theirs")
    file = next((warehouse / "filed").glob("*.parquet"))
    theirs = next((outside / "theirs").glob("*.parquet"))
    file.unlink()
    file.symlink_to(theirs)
    log = warehouse / "logged" / "_delta_log"
    log.rename(outside / "log")
    log.symlink_to(outside / "log")
    tables = orders_of(warehouse, "linked", "filed", "logged")
    assert len(tables) == 3
    for name in ("linked", "filed", "logged"):
        assert "outside of its warehouse" in here(f"SELECT * FROM {name}", tables).refused, name


def test_one_person_has_one_question_and_all_have_two() -> None:
    processes = SqlProcesses()

    async def crowd() -> list[str]:
        order = SqlOrder("SELECT 1", [])
        asked = (processes.ask(person, order) for person in ("anna", "anna", "ben", "carl"))
        found: list[object] = await asyncio.gather(*asked, return_exceptions=True)
        return [each.code if isinstance(each, Declined) else "answered" for each in found]

    assert asyncio.run(crowd()) == ["answered", "too_many", "answered", "too_many"]
