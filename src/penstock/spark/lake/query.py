"""SQL over a warehouse's tables, read-only, with DuckDB in this process. (With Spark: `penstock.spark.asking`.)

Tables are given to DuckDB as Arrow datasets of the files of their newest version. Columns and filters are pushed down
into the Parquet files, files of other partitions are not opened, and nothing is downloaded. Engines are told of those
tables only whose names the text has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import Missing, SparkRoomError
from penstock.spark.lake.warehouse import NoSuchTable, TableName, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from penstock.spark.lake.store import TableStore

_BATCH_ROWS: Final = 10_000
_UNKNOWN_TABLE: Final = re.compile(
    r"Table with name (\S+) does not exist|\[TABLE_OR_VIEW_NOT_FOUND\] The table or view (\S+) cannot be found"
)


class SqlRefused(SparkRoomError):
    """The engine does not take the SQL; says what and where."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows that SQL gave; `more` says that there are others beyond the limit."""

    rows: pa.Table
    more: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an engine may use. It spills nothing to a disk, and loads nothing that is not in it."""

    memory_bytes: int
    threads: int = 1
    batch_rows: int = 1_000

    def config(self) -> dict[str, Any]:
        return {
            "memory_limit": f"{self.memory_bytes}B",
            "threads": self.threads,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }


def named_in(sql: str, tables: Sequence[TableName]) -> list[TableName]:
    """Those tables whose names occur in the text. Pure."""
    bare = sql.replace('"', "").replace("`", "")
    return [each for each in tables if re.search(word_of(each.name), bare, re.IGNORECASE)]


def word_of(name: str) -> str:
    return rf"(?<![\w.]){re.escape(name)}(?!\w)"


def dataset_of(store: TableStore) -> ds.FileSystemDataset:
    """The table's newest version for whatever reads Arrow datasets. What a file lacks is null; partition values are
    the table's, not those of directories."""
    import pyarrow.dataset as ds

    from penstock.spark.lake.parquet_rows import partition_value
    from penstock.spark.lake.places import opened

    schema = store.schema()
    files, _ = opened(store.location, store.storage)
    parquet = ds.ParquetFileFormat()

    def expression(partition: Any) -> Any:
        whole = None
        for name, text in partition.items():
            if name in schema.names:
                value = partition_value(text, schema.field(name).type)
                equal = ds.field(name) == value if value.is_valid else ds.field(name).is_null()
                whole = equal if whole is None else whole & equal
        return whole

    # Iceberg's files have their partition columns themselves, and a value cut to the day is none of a column.
    keeps = store.layout().keeps_partition_columns
    fragments = [
        parquet.make_fragment(opened(each.path, store.storage)[1], files, None if keeps else expression(each.partition))
        for each in store.files()
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, files)


def ask_duckdb(warehouse: Warehouse, sql: str, *, limit: int | None = None) -> Answer:
    """One statement; `SqlRefused` or `NoSuchTable` when it cannot be answered."""
    tables = warehouse.tables()
    try:
        return ask_tables(tables, sql, limit=limit)
    except SqlRefused as refused:
        raise explained(warehouse, tables, str(refused)) from refused


def ask_tables(
    tables: Sequence[TableName],
    sql: str,
    *,
    limit: int | None = None,
    bounds: Bounds | None = None,
    reads: Collection[str] = ("SELECT", "EXPLAIN"),
    check: Callable[[TableName, TableStore], None] = lambda *_: None,
) -> Answer:
    """One statement of the kinds that `reads` has, over these tables and no others; `SqlRefused` for another.

    `check` is shown each table that the statement names before any of its files is opened.
    """
    try:
        import duckdb
    except ImportError as missing:
        raise Missing("`lake query` needs DuckDB: pip install 'penstock[spark]'") from missing
    with duckdb.connect(config=bounds.config() if bounds else {}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # Or names of Python's variables would be tables.
        connection.execute("SET python_enable_replacements = false")
        for number, table in enumerate(named_in(sql, tables)):
            store = table.open()
            check(table, store)
            _give(connection, f"_penstock_{number}", table.name, store)
        # From here on it sees nothing but the tables: no files, no network, no other settings.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            _check_reads(connection, sql, reads)
            answered: Any = connection.sql(sql)
            # It was renamed in version 2.
            reader = getattr(answered, "to_arrow_reader", None) or answered.fetch_arrow_reader
            return _taken(reader(bounds.batch_rows if bounds else _BATCH_ROWS), limit)
        except duckdb.Error as refused:
            raise SqlRefused(str(refused)) from refused


def _check_reads(connection: Any, sql: str, reads: Collection[str]) -> None:
    """One statement that asks. DuckDB itself would take others, and forget with the process what they changed."""
    kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    if len(kinds) != 1:
        raise SqlRefused(f"one statement is wanted, this has {len(kinds)}")
    if kinds[0] not in reads:
        raise SqlRefused(f"`lake query` reads, it changes nothing: {kinds[0]} is refused")


def _give(connection: Any, alias: str, whole_name: str, store: TableStore) -> None:
    connection.register(alias, dataset_of(store))
    *schema, name = whole_name.split(".")
    if schema:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted('.'.join(schema))}")
    place = ".".join(_quoted(each) for each in ((".".join(schema), name) if schema else (name,)))
    connection.execute(f"CREATE VIEW {place} AS SELECT * FROM {alias}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _taken(batches: Any, limit: int | None) -> Answer:
    import pyarrow as pa

    taken, count = [], 0
    for batch in batches:
        taken.append(batch)
        count += batch.num_rows
        if limit is not None and count > limit:
            break
    whole = pa.Table.from_batches(taken, schema=batches.schema)
    more = limit is not None and count > limit
    return Answer(whole.slice(0, limit) if more else whole, more)


def explained(warehouse: Warehouse, tables: list[TableName], told: str) -> SparkRoomError:
    unknown = _UNKNOWN_TABLE.search(told)
    if unknown is None:
        return SqlRefused(told)
    return NoSuchTable(warehouse.unknown((unknown[1] or unknown[2]).replace("`", ""), tables))
