"""format("penstock") with exactly.once: what readers of committed records see is each record once, whatever failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from penstock.blocking import Admin, Consumer
from tests.patience import within
from tests.spark.starting import started


def committed(bootstrap: str, topic: str, count: int) -> list[int]:
    with Consumer(
        topic, bootstrap_servers=bootstrap, offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        found: list[int] = []
        while len(found) < count:
            records = consumer.poll(timeout_ms=within(10_000))
            assert records, f"only {len(found)} of {count} are shown"
            found += [int(record.value) for record in records]
        assert consumer.poll(timeout_ms=300) == [], "no more than that"
        return sorted(found)


def carry(spark: SparkSession, bootstrap: str, topic: str, checkpoint: Path, limit: int = 200) -> None:
    source = spark.readStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    source = source.option("subscribe", topic).option("startingOffsets", "earliest")
    rows = source.option("maxOffsetsPerTrigger", str(limit)).load().select("key", F.col("value").cast("string"))
    writer = rows.writeStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    writer = writer.option("topic", f"{topic}-out").option("exactly.once", "true")
    query = started(writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True))
    assert query.awaitTermination(within(60))
    assert query.exception() is None


def test_a_stream_is_carried_from_topic_to_topic_in_transactions(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
        admin.create_topic(f"{topic}-out", partitions=2)
    produce(topic, [b"%d" % number for number in range(500)])
    carry(spark, bootstrap, topic, scratch / "checkpoint")
    assert committed(bootstrap, f"{topic}-out", 500) == list(range(500))
    produce(topic, [b"%d" % number for number in range(500, 600)])
    carry(spark, bootstrap, topic, scratch / "checkpoint")
    assert committed(bootstrap, f"{topic}-out", 600) == list(range(600))
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert admin.list_transactions(states=["Ongoing"]) == []
