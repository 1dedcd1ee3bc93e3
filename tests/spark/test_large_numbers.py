"""Topics after years through Spark: offsets beyond 53 bits, times of other centuries."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.blocking import Producer
from penstock.testing import EmbeddedBroker, broker
from penstock.testing.ancient import Age, OldTopic, Past

START = (1 << 53) - 3
LAST = (1 << 63) - 1
TIMES_MS = [1, 4_102_444_800_000, 9_223_372_036_855, 253_402_300_799_999, 253_402_300_800_000, (1 << 53) + 1, LAST]
"""1970, 2100, the first that nanoseconds cannot count, the last of 9999, year 10000, and two beyond Spark's years."""


@pytest.fixture(scope="module")
def old() -> Iterator[EmbeddedBroker]:
    configs = {"message.timestamp.after.max.ms": str(LAST), "retention.ms": "-1"}
    with broker(past=Past(Age(START), [OldTopic("read", [[1]], configs)])) as running:
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
