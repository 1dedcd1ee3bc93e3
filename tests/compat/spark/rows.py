"""Topics as tables of plain tuples, whoever reads them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.compat.contents import Contents
from tests.patience import within
from tests.spark.starting import started

JVM, OURS = "kafka", "penstock"

Row = tuple[Any, ...]
"""(topic, partition, offset, timestamp in ms, its type, key, value, headers); the last only where they were asked for.

Long values are digests: a failing comparison of megabytes helps nobody.
"""

LONG_BYTES = 10_000
STREAM_TIMEOUT_S = 120


def batch(spark: SparkSession, by: str, bootstrap: str, options: Mapping[str, str]) -> list[Row]:
    """What a batch read gives, sorted by where it lies."""
    reader = spark.read.format(by).option("kafka.bootstrap.servers", bootstrap)
    return rows_of(reader.options(**options).load())


class Stream:
    """One streaming query over a topic that keeps what it has read as files, started as often as a test likes."""

    def __init__(self, spark: SparkSession, by: str, bootstrap: str, options: Mapping[str, str], home: Path) -> None:
        self._spark, self._by, self._home = spark, by, home / f"{by}-{uuid.uuid4().hex[:8]}"
        self._options = {"kafka.bootstrap.servers": bootstrap, **options}

    def drain(self) -> list[Row]:
        """Reads what is there now, from where it stopped, and gives everything that it has read so far."""
        source = self._spark.readStream.format(self._by).options(**self._options).load()
        writer = source.writeStream.format("parquet").option("checkpointLocation", str(self._home / "checkpoint"))
        query = started(writer.trigger(availableNow=True), str(self._home / "rows"))
        try:
            assert query.awaitTermination(within(STREAM_TIMEOUT_S)), (
                f"{self._by}: not drained within {STREAM_TIMEOUT_S} s"
            )
            self.batches = [progress.numInputRows for progress in query.recentProgress]
        finally:
            query.stop()
        return rows_of(self._spark.read.schema(source.schema).parquet(str(self._home / "rows")))


def rows_of(frame: DataFrame) -> list[Row]:
    """Every row once, as it is: nothing is left out, nothing is taken twice into account."""
    names = ["topic", "partition", "offset", "unix_micros(timestamp) / 1000", "timestampType", "key", "value"]
    if "headers" in frame.columns:
        names.append("headers")
    found = frame.selectExpr(*names).toArrow().to_pylist()
    return sorted((_row(tuple(each.values())) for each in found), key=lambda row: row[:3])


def _row(values: tuple[Any, ...]) -> Row:
    topic, partition, offset, time_ms, kind, key, value, *headers = values
    return (
        topic,
        partition,
        offset,
        time_ms,
        kind,
        key,
        shortened(value),
        *(None if each is None else tuple((header["key"], header["value"]) for header in each) for each in headers),
    )


def shortened(value: bytes | None) -> bytes | str | None:
    if value is None or len(value) <= LONG_BYTES:
        return value
    return f"{len(value)} bytes, {hashlib.sha256(value).hexdigest()}"


def rows_of_contents(contents: Contents) -> list[Row]:
    """What a plain consumer saw, in the same form, with headers."""
    found: list[Row] = []
    for (topic, partition), records in contents.records.items():
        for offset, (kind, time_ms), key, value, headers in records:
            # librdkafka counts 1 for create and 2 for append; no headers are null in Spark.
            row = (topic, partition, offset, time_ms, kind - 1, key, shortened(value), headers or None)
            found.append(row)
    return sorted(found, key=lambda row: row[:3])
