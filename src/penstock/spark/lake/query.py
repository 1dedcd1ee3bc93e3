"""SQL over a warehouse's tables, read-only: with DuckDB in this process, or with Spark.

Tables are given to DuckDB as Arrow datasets of the files of their newest version. Columns and filters are pushed down
into the Parquet files, files of other partitions are not opened, and nothing is downloaded. Engines are told of those
tables only whose names the text has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.spark.errors import Missing, SparkRoomError
from penstock.spark.lake.warehouse import NoSuchTable, TableName, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import SparkSession

    from penstock.spark.lake.store import TableStore

_BATCH_ROWS: Final = 10_000
_ASKING: Final = ("select", "with", "from", "values", "table", "show", "describe", "explain")
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


def named_in(sql: str, tables: Sequence[TableName]) -> list[TableName]:
    """Those tables whose names occur in the text. Pure."""
    bare = sql.replace('"', "").replace("`", "")
    return [each for each in tables if re.search(_word(each.name), bare, re.IGNORECASE)]


def _word(name: str) -> str:
    return rf"(?<![\w.]){re.escape(name)}(?!\w)"


def dataset_of(store: TableStore) -> ds.FileSystemDataset:
    """The table's newest version for whatever reads Arrow datasets. What a file lacks is null; partition values are
    the table's, not those of directories."""
    import pyarrow.dataset as ds

    from penstock.spark.lake.parquet_rows import check_plain, partition_value
    from penstock.spark.lake.places import opened

    check_plain(store)
    schema = store.schema()
    files, _ = opened(store.location)
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
        parquet.make_fragment(opened(each.path)[1], files, None if keeps else expression(each.partition))
        for each in store.files()
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, files)


def ask_duckdb(warehouse: Warehouse, sql: str, *, limit: int | None = None) -> Answer:
    """One statement; `SqlRefused` or `NoSuchTable` when it cannot be answered."""
    try:
        import duckdb
    except ImportError as missing:
        raise Missing("`lake query` needs DuckDB: pip install 'penstock[spark]'") from missing
    tables = warehouse.tables()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # Or names of Python's variables would be tables.
        connection.execute("SET python_enable_replacements = false")
        for number, table in enumerate(named_in(sql, tables)):
            _give(connection, f"_penstock_{number}", table)
        # From here on it sees nothing but the tables: no files, no network, no other settings.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            _check_reads(connection, sql)
            answered: Any = connection.sql(sql)
            # It was renamed in version 2.
            reader = getattr(answered, "to_arrow_reader", None) or answered.fetch_arrow_reader
            return _taken(reader(_BATCH_ROWS), limit)
        except duckdb.Error as refused:
            raise _explained(warehouse, tables, str(refused)) from refused


def _check_reads(connection: Any, sql: str) -> None:
    """One statement that asks. DuckDB itself would take others, and forget with the process what they changed."""
    kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    if len(kinds) != 1:
        raise SqlRefused(f"one statement is wanted, this has {len(kinds)}")
    if kinds[0] not in ("SELECT", "EXPLAIN"):
        raise SqlRefused(f"`lake query` reads, it changes nothing: {kinds[0]} is refused")


def _give(connection: Any, alias: str, table: TableName) -> None:
    connection.register(alias, dataset_of(table.open()))
    *schema, name = table.name.split(".")
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


def _explained(warehouse: Warehouse, tables: list[TableName], told: str) -> SparkRoomError:
    unknown = _UNKNOWN_TABLE.search(told)
    if unknown is None:
        return SqlRefused(told)
    return NoSuchTable(warehouse.unknown((unknown[1] or unknown[2]).replace("`", ""), tables))


def ask_spark(warehouse: Warehouse, sql: str, *, master: str = "", limit: int | None = None) -> Answer:
    """The same with Spark's SQL, on `master`."""
    _check_asks(sql)
    try:
        from pyspark.errors import PySparkException
    except ImportError as missing:
        raise Missing("Spark is not installed: pip install 'penstock[spark]'") from missing
    tables = warehouse.tables()
    with _session(master) as spark:
        text = sql
        for table in named_in(sql, tables):
            view = re.sub(r"\W", "__", table.name)
            text = re.sub(rf"`?{_word(table.name)}`?", view, text, flags=re.IGNORECASE)
            options = {"path": table.options.path, "table.format": table.options.table_format}
            options |= {"catalog": table.options.catalog, "table": table.options.table}
            reader = spark.read.format("penstock-lake").options(
                **{name: each for name, each in options.items() if each}
            )
            reader.load().createOrReplaceTempView(view)
        try:
            rows = spark.sql(text)
            found = (rows if limit is None else rows.limit(limit + 1)).toArrow()
        except PySparkException as refused:
            raise _explained(warehouse, tables, _first_lines(refused)) from refused
    more = limit is not None and found.num_rows > limit
    return Answer(found.slice(0, limit) if more else found, more)


def _check_asks(sql: str) -> None:
    """Spark runs commands as they are parsed, so they are told from questions before."""
    bare = re.sub(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'", " ", sql, flags=re.DOTALL)
    words = re.findall(r"\w+", bare.lower())
    if not words or words[0] not in _ASKING or "insert" in words:
        raise SqlRefused(f"`lake query` reads, it changes nothing: begin with one of {', '.join(_ASKING)}")


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    """A session of our own ends with the question; one that was running stays."""
    from pyspark.sql import SparkSession

    from penstock.spark.session import LOCAL_MASTER, session

    running = SparkSession.getActiveSession()
    spark = session(master or LOCAL_MASTER, app_name="penstock lake query", settings={"spark.log.level": "ERROR"})
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def _first_lines(failure: Exception) -> str:
    """What Spark says before it prints its plan or the JVM's stack."""
    text = str(failure).partition("\nJVM stacktrace")[0]
    return "\n".join(line for line in text.splitlines() if not line.startswith(("'", "+- ", "   +- "))).strip()
