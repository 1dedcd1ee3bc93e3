"""Rows as the records of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption
from penstock.spark.pipeline.flow import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA_COLUMNS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"}
)
_COPIED: Final = ("key", "value", "headers", "timestamp")
"""What a raw record takes along to another topic; its partition and offset were those of the old one."""


def as_records(rows: DataFrame, sink: Sink) -> DataFrame:
    """Rows as a topic takes them: those that look like records go as they are, others become JSON."""
    from pyspark.sql import functions as f

    columns = rows.columns
    if set(columns) <= KAFKA_COLUMNS and "value" in columns and sink.key is None:
        raw = "offset" in columns or "timestampType" in columns
        return rows.select(*(name for name in _COPIED if name in columns)) if raw else rows
    value = f.to_json(f.struct(*(f.col(f"`{name}`") for name in columns))).alias("value")
    if sink.key is None:
        return rows.select(value)
    if sink.key not in columns:
        raise BadOption(f"sink {sink.name}: key = {sink.key!r} is no column; there is {', '.join(columns)}")
    return rows.select(f.col(f"`{sink.key}`").cast("string").alias("key"), value)
