"""Topics with transactions: what was aborted is no row, what is open is waited for, no offset of either is missed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.blocking import Admin, Producer
from penstock.spark import table
from penstock.spark.feed import Feed
from penstock.spark.lake.audit import audit
from penstock.spark.lake.findings import PROVEN
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from tests.patience import within
from tests.spark.starting import started

JSON = {"value.format": "json", "value.schema": "id BIGINT"}


def send(producer: Producer, topic: str, ids: Iterable[int]) -> None:
    """In the transaction that is open; every record is in the log when it returns."""
    for each in ids:
        producer.send(topic, json.dumps({"id": each}).encode(), partition=each % 2)
    producer.flush()


def abort(producer: Producer, topic: str, ids: Iterable[int]) -> None:
    producer.begin()
    send(producer, topic, ids)
    producer.abort()


def ids_of(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.collect())


def test_rows_tables_and_unions_hold_what_was_committed_and_nothing_else(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", **JSON}
    place = scratch / "table"

    def lake_of(limit: int) -> None:
        feed = Feed.of_source(options, query=topic).to_property()
        rows = spark.readStream.format("penstock").options(**options, maxOffsetsPerTrigger=limit).load()
        writer = rows.writeStream.format("penstock-lake").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(scratch / "checkpoint")).options(rows="record", feed=feed)
        assert started(writer, str(place)).awaitTermination(within(60)), "the query has not ended within a minute"

    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            send(producer, topic, range(6))
        abort(producer, topic, range(100, 112))
        with producer.transaction():
            send(producer, topic, range(6, 10))
        abort(producer, topic, range(112, 114))

        assert ids_of(spark.read.format("penstock").options(**options).load()) == list(range(10))
        greedy = {**options, "kafka.isolation.level": "read_uncommitted"}
        everything = ids_of(spark.read.format("penstock").options(**greedy).load())
        assert everything == [*range(10), *range(100, 114)]

        # 24 records and four markers in each of two partitions: some batches hold no row at all.
        lake_of(limit=8)
        store = open_store(LakeOptions(path=str(place)))
        store.refresh()
        commits = [each for each in store.commits() if each.ranges]
        assert sum(each.rows for each in commits) == 10
        assert 0 in {each.rows for each in commits}
        assert (
            sum(each.count for commit in commits for each in commit.ranges) == 32 == 10 + sum(c.gaps for c in commits)
        )

        abort(producer, topic, range(200, 204))
        producer.begin()
        send(producer, topic, (10, 11))
        assert ids_of(table(spark, topic, path=str(place))) == list(range(10)), (
            "neither what is aborted nor what is open"
        )
        lake_of(limit=1_000)
        producer.commit()
    assert ids_of(table(spark, topic, path=str(place))) == list(range(12))
    store.compact(1 << 20)
    lake_of(limit=1_000)
    assert ids_of(spark.read.format("penstock-lake").load(str(place))) == list(range(12))
    found = audit(store)
    assert found.clean, str(found)
    assert {check.outcome for check in found.checks} == {PROVEN}, str(found)
    assert (found.rows, found.offsets) == (12, found.rows + found.gaps)
