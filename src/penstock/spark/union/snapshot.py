"""One version of a table as a DataFrame: by Spark's own Parquet reader where that gives the table's rows.

Spark's reader prunes columns, pushes filters down and runs in the JVM. It knows nothing of tables, though: which files,
which columns and which types is told to it; partition values it takes from the names of directories. Where those are
not what the table says, format("penstock-lake") reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from penstock.spark.lake.places import is_local
from penstock.spark.naming import LAKE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.lake.options import LakeOptions
    from penstock.spark.lake.store import TableFile, TableStore

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_GLOBS: Final = frozenset("*?[]{}\\")
_PLAIN_TYPES: Final = frozenset({"string", "int", "bigint", "smallint", "tinyint", "date", "boolean"})
"""Of partition columns: those that Spark reads from text as the tables' formats write them."""

_LISTING: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def rows_of(spark: SparkSession, options: LakeOptions, store: TableStore, schema: StructType) -> DataFrame:
    """The rows of the version that `store` has loaded."""
    files = store.files()
    if not files:
        return spark.createDataFrame([], schema)
    in_files = store.layout().keeps_partition_columns
    if not parquet_will_do(files, store.location, schema, in_files=in_files):
        return spark.read.format(LAKE_FORMAT).options(**_told(options, store.version())).load()
    reader = spark.read.schema(schema)
    if not in_files and any(file.partition for file in files):
        reader = reader.option("basePath", store.location)
    with _listing_here(spark):
        rows = reader.parquet(*(file.path for file in files))
    # Spark puts partition columns last.
    return rows.select(*(f"`{name}`" for name in schema.names))


def identity_of(store: TableStore) -> str:
    """The loaded version of this very table: one that was made anew at the same place has another."""
    # The library's own handle, which both formats have and no other room needs.
    known = store.table  # type: ignore[attr-defined]
    made = known.metadata().id if store.format == "delta" else known.metadata.table_uuid
    return f"{made}/{store.version()}"


def parquet_will_do(files: Sequence[TableFile], location: str, schema: StructType, *, in_files: bool) -> bool:
    """Whether Spark's Parquet reader sees what the table says. Pure.

    `in_files` are partition columns that files hold like any other; else Spark reads them from directories.
    """
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    for file in files:
        if not is_local(file.path) or _GLOBS & set(file.path):
            return False
        if in_files:
            continue
        if any(kinds.get(name) not in _PLAIN_TYPES for name in file.partition):
            return False
        if _directories(file.path, location) != list(file.partition.items()):
            return False
    return True


def _directories(path: str, location: str) -> list[tuple[str, str | None]]:
    """The partition values that Spark reads from a file's directories; other directories are values of nothing."""
    try:
        inside = PurePosixPath(_bare(path)).relative_to(_bare(location)).parent
    except ValueError:
        return [("", None)]
    pairs = [part.partition("=") for part in inside.parts]
    return [(unquote(name), None if value == _NULL else unquote(value)) for name, equals, value in pairs if equals]


def _bare(place: str) -> str:
    return place.removeprefix("file://").removeprefix("file:")


def _told(options: LakeOptions, version: int) -> dict[str, str]:
    told = {"path": options.path, "table.format": options.table_format, "catalog": options.catalog}
    told |= {"table": options.table, "version": str(version), **options.reached}
    return {name: value for name, value in told.items() if value}


@contextmanager
def _listing_here(spark: SparkSession) -> Iterator[None]:
    """Spark starts a job to look at more than 32 files, which for local ones costs more than looking."""
    before = spark.conf.get(_LISTING, None)
    try:
        spark.conf.set(_LISTING, "100000")
        yield
    finally:
        if before is None:
            spark.conf.unset(_LISTING)
        else:
            spark.conf.set(_LISTING, before)
