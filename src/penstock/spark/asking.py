"""A question to lake tables, answered by Spark instead of DuckDB: for SQL that only Spark knows, or on a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import Missing
from penstock.spark.lake.query import Answer, SqlRefused, explained, named_in, word_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.lake.warehouse import Warehouse

_ASKING: Final = ("select", "with", "from", "values", "table", "show", "describe", "explain")


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
            text = re.sub(rf"`?{word_of(table.name)}`?", view, text, flags=re.IGNORECASE)
            options = {"path": table.options.path, "table.format": table.options.table_format}
            options |= {"catalog": table.options.catalog, "table": table.options.table, **table.options.reached}
            reader = spark.read.format("penstock-lake").options(
                **{name: each for name, each in options.items() if each}
            )
            reader.load().createOrReplaceTempView(view)
        try:
            rows = spark.sql(text)
            found = (rows if limit is None else rows.limit(limit + 1)).toArrow()
        except PySparkException as refused:
            raise explained(warehouse, tables, _first_lines(refused)) from refused
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

    from penstock.spark.sessions import LOCAL_MASTER, session

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
