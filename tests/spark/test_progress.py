"""How far queries are, as lag tools and the internal topic show it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from penstock.blocking import Admin, Consumer
from penstock.model.ids import TopicPartition
from penstock.spark.naming import INTERNAL_TOPIC
from penstock.spark.progress.listener import flush
from tests.patience import wait_for, within
from tests.spark.starting import started

PATIENCE_S = 30.0
INTERNAL = (INTERNAL_TOPIC, 0)


def wait_until(true: Callable[[], bool]) -> None:
    wait_for("what was waited for", true, timeout_s=PATIENCE_S)


def stream_of(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    return (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "10")
        .load()
    )


def run(rows: DataFrame, name: str, scratch: Path, each: Callable[[DataFrame, int], None] | None = None) -> None:
    writer = rows.writeStream.queryName(name).option("checkpointLocation", str(scratch / "checkpoint"))
    writer = writer.format("noop") if each is None else writer.foreachBatch(each)
    query = started(writer.trigger(availableNow=True))
    assert query.awaitTermination(int(within(PATIENCE_S)))


def committed(admin: Admin, name: str) -> int:
    """Of all partitions together."""
    return sum(found.offset for found in admin.group_offsets(f"spark-{name}").values())


def records_of(bootstrap: str, query: str) -> list[dict[str, object]]:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([INTERNAL])
        consumer.seek_to_start()
        end = consumer.end_offsets(INTERNAL)[TopicPartition(*INTERNAL)]
        records = []
        while consumer.position(INTERNAL) < end:
            records += consumer.poll(timeout_ms=200)
    found = [record for record in records if (record.key or b"").endswith(f"/{query}".encode())]
    return [json.loads(record.value or b"") for record in found]


def test_lag_tools_see_every_batch_and_the_last_one(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    name, batches = f"watched-{topic}", []
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 2)
        for partition in (0, 1):
            produce(topic, [b"v"] * 15, partition=partition)

        def each(rows: DataFrame, batch_id: int) -> None:
            rows.count()
            # The task that read it has told where the batch begins, and the listener, which may be late, the same.
            wait_until(lambda: committed(admin, name) == 10 * batch_id)
            batches.append(batch_id)

        run(stream_of(spark, bootstrap, topic), name, scratch, each)
        assert batches == [0, 1, 2]
        wait_until(lambda: committed(admin, name) == 30)
        assert [(each.partition, each.committed, each.lag) for each in admin.group_lag(f"spark-{name}")] == [
            (0, 15, 0),
            (1, 15, 0),
        ]
        group = admin.describe_group(f"spark-{name}")
        assert (group.state, group.members) == ("Empty", [])

        wait_until(lambda: any(not record["active"] for record in records_of(bootstrap, name)))
        assert flush(within(PATIENCE_S))
    last = records_of(bootstrap, name)[-1]
    assert (last["owner"], last["batch_id"], last["rows"], last["error"]) == ("penstock-tests", 2, 10, "")
    assert [part["offset"] for part in last["partitions"]] == [15, 15]  # type: ignore[attr-defined]


def test_without_a_listener_lag_tools_see_all_but_the_last_batch(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, [b"v"] * 25)
    name = f"alone-{topic}"
    # Its formats were registered by the installed package; nobody called penstock.spark.register.
    run(stream_of(spark.newSession(), bootstrap, topic), name, scratch)
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert sum(each.lag or 0 for each in admin.group_lag(f"spark-{name}")) == 5
        assert committed(admin, name) == 20


def test_a_query_that_fails_says_so_and_stays_where_it_was(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, [b"v"] * 15)
    name = f"failing-{topic}"

    def each(rows: DataFrame, batch_id: int) -> None:
        rows.count()
        if batch_id == 1:
            raise ValueError("the sink is full")

    with pytest.raises(StreamingQueryException, match="the sink is full"):
        run(stream_of(spark, bootstrap, topic), name, scratch, each)
    wait_until(lambda: any(not record["active"] for record in records_of(bootstrap, name)))
    last = records_of(bootstrap, name)[-1]
    assert last["batch_id"] == 0
    assert "the sink is full" in str(last["error"])
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert committed(admin, name) == 10
