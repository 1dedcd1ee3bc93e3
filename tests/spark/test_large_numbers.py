"""Topics after years through Spark into tables: offsets beyond 53 bits, times of other centuries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.blocking import Producer
from penstock.spark.lake.audit import audit
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.parquet_rows import rows_of
from penstock.testing import EmbeddedBroker, broker
from penstock.testing.ancient import Age, OldTopic, Past
from tests.patience import within
from tests.spark.starting import started

START = (1 << 53) - 3
LAST = (1 << 63) - 1
TIMES_MS = [1, 4_102_444_800_000, 9_223_372_036_855, 253_402_300_799_999, 253_402_300_800_000, (1 << 53) + 1, LAST]
"""1970, 2100, the first that nanoseconds cannot count, the last of 9999, year 10000, and two beyond Spark's years."""

FORMATS = ("delta", "iceberg")


@pytest.fixture(scope="module")
def old() -> Iterator[EmbeddedBroker]:
    configs = {"message.timestamp.after.max.ms": str(LAST), "retention.ms": "-1"}
    with broker(past=Past(Age(START), [OldTopic(name, [[1]], configs) for name in (*FORMATS, "read")])) as running:
        yield running


def fill(old: EmbeddedBroker, topic: str) -> None:
    with Producer(bootstrap_servers=old.bootstrap_servers) as producer:
        for time_ms in TIMES_MS:
            producer.send(topic, str(time_ms), timestamp=time_ms)
        producer.flush()


def options(old: EmbeddedBroker, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": old.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}


def micros(time_ms: int) -> int:
    """What Spark can hold of it."""
    return min(time_ms, LAST // 1_000) * 1_000


def test_exact_offsets_are_read_where_a_float_would_round_them(spark: SparkSession, old: EmbeddedBroker) -> None:
    fill(old, "read")
    places = {"startingOffsets": START + 1, "endingOffsets": START + 6}
    asked = {name: json.dumps({"read": {"0": offset}}) for name, offset in places.items()}
    frame = spark.read.format("penstock").options(**{**options(old, "read"), **asked}).load()
    found = frame.selectExpr("offset", "unix_micros(timestamp) AS at", "CAST(value AS STRING) AS value").collect()
    assert sorted(tuple(row) for row in found) == [
        (START + at, micros(TIMES_MS[at]), str(TIMES_MS[at])) for at in range(1, 6)
    ]


@pytest.mark.parametrize("table_format", FORMATS)
def test_an_old_topic_lands_in_a_table_once_and_its_audit_is_clean(
    spark: SparkSession, old: EmbeddedBroker, scratch: Path, table_format: str
) -> None:
    frame = spark.readStream.format("penstock").options(**options(old, table_format)).load()
    rows = frame.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS n", "offset", "timestamp AS at")
    for _ in range(2):
        fill(old, table_format)
        writer = rows.writeStream.format("penstock-lake").trigger(availableNow=True)
        named = {"checkpointLocation": str(scratch / "checkpoint"), "table.format": table_format}
        query = started(writer.options(**named), str(scratch / "table"))
        assert query.awaitTermination(within(60)), "the query has not ended within a minute"
    store = open_store(LakeOptions.of({"path": str(scratch / "table"), "table.format": table_format}))
    store.refresh()
    found: list[tuple[Any, ...]] = []
    for file in store.files():
        for batch in rows_of(file.path, store.schema(), file.partition):
            at = batch.column("at").cast(pa.timestamp("us", "UTC")).view(pa.int64())
            found += zip(batch.column("offset").to_pylist(), batch.column("n").to_pylist(), at.to_pylist(), strict=True)
    assert sorted(found) == [
        (offset, time_ms, micros(time_ms)) for offset, time_ms in enumerate(TIMES_MS + TIMES_MS, START)
    ]
    assert [(each.start, each.end) for commit in store.commits() for each in commit.ranges] == [
        (START, START + 7),
        (START + 7, START + 14),
    ]
    assert audit(store).clean
