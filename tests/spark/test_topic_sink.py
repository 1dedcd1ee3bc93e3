"""Rows become records: what a plain consumer reads is what was written, batch and streaming."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from penstock.blocking import Admin, Consumer
from tests.patience import within
from tests.spark.starting import started

SCHEMA = (
    "key BINARY, value STRING, topic STRING, partition INT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, note STRING"
)


def consumed(bootstrap: str, topic: str, count: int) -> list[Any]:
    with Consumer(topic, bootstrap_servers=bootstrap, offset_reset="earliest") as consumer:
        found: list[Any] = []
        while len(found) < count:
            found += consumer.poll(timeout_ms=within(10_000), max_records=count - len(found))
        assert consumer.poll(timeout_ms=200) == [], "no more than that"
        return sorted(found, key=lambda record: (record.partition, record.offset))


def append(frame: DataFrame, bootstrap: str, **options: str) -> None:
    frame.write.format("penstock").mode("append").option("kafka.bootstrap.servers", bootstrap).options(**options).save()


def test_a_batch_is_written_record_for_record(spark: SparkSession, bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    moment = datetime(2026, 2, 3, 4, 5, 6, 789_000, UTC)
    rows = [
        (bytearray(b"k"), "v", topic, 1, moment, [Row(key="h", value=bytearray(b"1"))], "left out"),
        (None, None, topic, 1, None, None, None),
        (bytearray(b""), "", topic, 0, moment, [Row(key="x", value=None)], None),
    ]
    append(spark.createDataFrame(rows, SCHEMA).coalesce(1), bootstrap)
    empty, first, second = consumed(bootstrap, topic, 3)
    assert (first.partition, first.key, first.value, first.timestamp) == (1, b"k", b"v", int(moment.timestamp() * 1000))
    assert list(first.headers) == [("h", b"1")]
    assert (second.partition, second.key, second.value, list(second.headers)) == (1, None, None, [])
    assert abs(second.timestamp / 1000 - datetime.now(UTC).timestamp()) < 600
    assert (empty.partition, empty.key, empty.value, list(empty.headers)) == (0, b"", b"", [("x", None)])


def test_a_stream_carries_one_topic_to_others_and_every_record_arrives(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, [b"%d" % number for number in range(500)], key=b"k")
    source = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "200")
        .load()
    )
    even = F.col("value").cast("string").cast("int") % 2 == 0
    there = source.select(
        "key", "value", F.concat(F.lit(topic), F.when(even, "-even").otherwise("-odd")).alias("topic")
    )
    writer = (
        there.writeStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("checkpointLocation", str(scratch / "checkpoint"))
    )
    query = started(writer.trigger(availableNow=True))
    assert query.awaitTermination(within(60))
    assert query.exception() is None
    for name, rest in (("even", 0), ("odd", 1)):
        found = consumed(bootstrap, f"{topic}-{name}", 250)
        assert sorted(int(record.value) for record in found) == list(range(rest, 500, 2))
        assert {record.key for record in found} == {b"k"}


@pytest.mark.parametrize(
    ("row", "schema", "mode", "options", "words"),
    [
        ((1,), "value INT", "append", {"topic": "t"}, "column 'value' is int"),
        (("v",), "value STRING", "append", {}, "option topic, or have a column 'topic'"),
        (("v",), "value STRING", "overwrite", {"topic": "t"}, "cannot be overwritten"),
        (("v",), "value STRING", "append", {"topic": "t", "topics": "t"}, "did you mean 'topic'"),
    ],
)
def test_what_cannot_be_written_is_said_before_any_task_runs(
    spark: SparkSession,
    bootstrap: str,
    row: tuple[Any, ...],
    schema: str,
    mode: str,
    options: dict[str, str],
    words: str,
) -> None:
    frame = spark.createDataFrame([row], StructType.fromDDL(schema))
    writer = frame.write.format("penstock").mode(mode).option("kafka.bootstrap.servers", bootstrap).options(**options)
    with pytest.raises(PySparkException, match=words):
        writer.save()
