"""Rows of a query become changes: Spark does what `shape.py` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption
from penstock.spark.lake.keyed.changes import DELETE, IGNORED, KIND, PARTITION, SEEN, SEQUENCE, TOPIC, UPSERT
from penstock.spark.lake.keyed.envelopes import BY_KEY, DEBEZIUM, FLAT, FLAT_COLUMNS
from penstock.spark.lake.keyed.settings import OFFSET, TIMESTAMP, KeyedSettings
from penstock.spark.lake.keyed.shape import key_of_record, quoted, source_member

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OPERATION: Final = "_op"
SOURCE_OF: Final = "_source"
TOMBSTONE: Final = "_tombstone"
RECORD_KEY: Final = "_key"

METADATA: Final = (RECORD_KEY, TOPIC, PARTITION, OFFSET, TIMESTAMP, TOMBSTONE)
"""Columns of a source that a table by key needs beside those of its rows."""
_NOT_OF_ROWS: Final = frozenset({*METADATA, "_headers", OPERATION, SOURCE_OF})
_RAW: Final = {"topic": TOPIC, "partition": PARTITION, "offset": OFFSET}


def unwrapped(rows: DataFrame, cdc: str) -> DataFrame:
    """Rows of a source in an envelope as rows of the table that they tell of, with `_op` (c, u, d, r) and metadata."""
    from pyspark.sql import functions as f

    beside = [f.col(name) for name in METADATA if name in rows.columns]
    names = [name for name in rows.columns if name not in _NOT_OF_ROWS]
    if cdc == DEBEZIUM:
        return _of_debezium(rows, beside)
    if cdc == FLAT:
        told = f.when(f.col(TOMBSTONE) | (f.lower(f.col("__deleted")) == "true"), "d")
        operation = f.coalesce(told, f.col("__op"), f.lit("u"))
    else:
        operation = f.when(f.col(TOMBSTONE), "d").otherwise("u")
    return rows.select(*(f.col(quoted(name)) for name in names), operation.alias(OPERATION), *beside)


def _of_debezium(rows: DataFrame, beside: list[Column]) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    def told(name: str) -> Column:
        inner = f.col(f"payload.{name}") if "payload" in rows.columns else f.lit(None)
        return f.coalesce(f.col(name), inner)

    events = rows.select(
        told("before").alias("_before"),
        told("after").alias("_after"),
        told("op").alias(OPERATION),
        told("source").alias(SOURCE_OF),
        *beside,
    )
    kind = events.schema["_after"].dataType
    assert isinstance(kind, StructType), "the envelope's schema was made of the table's columns"
    is_delete = f.col(OPERATION) == "d"
    columns = [
        f.when(is_delete, f.col("_before").getField(name)).otherwise(f.col("_after").getField(name)).alias(name)
        for name in kind.names
    ]
    return events.select(*columns, OPERATION, SOURCE_OF, *beside)


def as_changes(rows: DataFrame, settings: KeyedSettings, names: dict[str, str] | None = None) -> DataFrame:
    """Changes, whose columns are called as the table calls them: `names` has those that are there, in small letters."""
    from pyspark.sql import functions as f

    rows = _raw_renamed(rows)
    _check_places(rows, settings)
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    user = [name for name in rows.columns if _is_of_rows(name, settings.cdc)]
    keys = {name.lower() for name in settings.keys}
    others = list(settings.keys[1:])
    known = names or {}
    columns = []
    for name in user:
        column = f.col(quoted(name))
        if name.lower() in keys and RECORD_KEY in rows.columns and settings.cdc:
            from_key = key_of_record(name, kinds[name].simpleString(), others)
            when = "TRUE" if settings.cdc == BY_KEY else _is_delete(settings, rows.columns)
            column = f.coalesce(column, f.expr(f"CASE WHEN {when} THEN {from_key} END"))
        columns.append(column.alias(known.get(name.lower(), name)))
    if not settings.in_log_order:
        columns += [f.expr(_sequence(settings)).alias(SEQUENCE), f.col(TOPIC)]
    columns += [f.col(PARTITION), f.col(OFFSET)]
    return rows.select(*columns, f.expr(_kind(settings, rows.columns)).alias(KIND), f.lit(1).cast("long").alias(SEEN))


def _is_of_rows(name: str, cdc: str) -> bool:
    return name not in _NOT_OF_ROWS and not (cdc == FLAT and name in FLAT_COLUMNS)


def _raw_renamed(rows: DataFrame) -> DataFrame:
    """Raw records have their place under the names of Spark's Kafka connector."""
    if not {"value", *_RAW} <= set(rows.columns):
        return rows
    from pyspark.sql import functions as f

    kept = [f.col(name).alias(_RAW.get(name, name)) for name in rows.columns if name != "timestampType"]
    return rows.select(*kept, f.col("value").isNull().alias(TOMBSTONE), f.col("timestamp").alias(TIMESTAMP))


def _check_places(rows: DataFrame, settings: KeyedSettings) -> None:
    needed = [PARTITION, OFFSET] if settings.in_log_order else [TOPIC, PARTITION, OFFSET]
    if settings.sequence_by == TIMESTAMP:
        needed.append(TIMESTAMP)
    lacking = [name for name in needed if name not in rows.columns]
    if lacking:
        raise BadOption(
            f"a table by key needs to know which record a row is from, and the rows have no {', '.join(lacking)}: let "
            "the steps between topic and table keep these columns"
        )


def _sequence(settings: KeyedSettings) -> str:
    member = source_member(settings.sequence_by)
    return f"{SOURCE_OF}.{quoted(member)}" if member is not None else settings.sequence_by


def _kind(settings: KeyedSettings, columns: list[str]) -> str:
    """SQL for what a change is. A null of `op` is a tombstone, which follows the delete that it repeats."""
    ignored = [f"({settings.ignore_when})"] if settings.ignore_when else []
    if settings.cdc == DEBEZIUM:
        ignored.append(f"{OPERATION} IS NULL OR {OPERATION} = 'm'")
    if settings.cdc == FLAT and settings.sequence_by not in (OFFSET, TIMESTAMP):
        ignored.append(TOMBSTONE)
    parts = [f"WHEN {each} THEN {IGNORED}" for each in ignored]
    if settings.cdc == DEBEZIUM:
        words = (
            "the table was truncated where it comes from, which no change by key can repeat: empty the table here and "
            "start again, or go on without that with ignore_when = \"_op = ''t''\""
        )
        parts.append(f"WHEN {OPERATION} = 't' THEN raise_error('{words}')".replace("''", "\\'"))
    parts.append(f"WHEN {_is_delete(settings, columns)} THEN {DELETE}")
    return f"CAST(CASE {' '.join(parts)} ELSE {UPSERT} END AS TINYINT)"


def _is_delete(settings: KeyedSettings, columns: list[str]) -> str:
    parts = [f"({settings.delete_when})"] if settings.delete_when else []
    if settings.cdc and OPERATION in columns:
        parts.append(f"{OPERATION} = 'd'")
    elif TOMBSTONE in columns:
        parts.append(TOMBSTONE)
    return " OR ".join(parts) or "FALSE"
