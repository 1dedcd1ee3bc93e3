"""format("penstock") with exactly.once: what readers of committed records see is each record once, whatever failed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from penstock.blocking import Admin, Consumer
from penstock.spark.pipeline import home
from penstock.spark.pipeline.auditing import audit_topics
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner
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


FLOW = """
name = "once"
bootstrap = "{bootstrap}"
[sources.orders]
topic = "{topic}"
format = "json"
schema = "id BIGINT, country STRING"
start = "earliest"
[[steps]]
name = "totals"
sql = "SELECT country, count(*) AS orders FROM orders GROUP BY country"
[sinks.copy]
from = "orders"
topic = "{topic}-copy"
exactly_once = true
[sinks.totals]
from = "totals"
topic = "{topic}-totals"
key = "country"
mode = "update"
exactly_once = true
"""


def test_topics_of_a_pipeline_are_written_in_transactions_in_every_mode(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        for name in (topic, f"{topic}-copy", f"{topic}-totals"):
            admin.create_topic(name, 2)
    (scratch / "once.toml").write_text(FLOW.format(bootstrap=bootstrap, topic=topic))
    flow = read_flow(scratch / "once.toml").once()
    for ids in (range(3), range(3, 5)):
        produce(topic, [json.dumps({"id": i, "country": "nl" if i % 2 else "de"}).encode() for i in ids])
        runner = Runner(flow, spark, patience=Patience(tries=1))
        runner.run(threading.Event())
        assert runner.state == home.FINISHED, runner.progress()
    shown = values_of(bootstrap, f"{topic}-copy", 5)
    assert sorted(each["id"] for each in shown) == [0, 1, 2, 3, 4]
    totals = values_of(bootstrap, f"{topic}-totals", 4)
    assert sorted((each["country"], each["orders"]) for each in totals) == [("de", 2), ("de", 3), ("nl", 1), ("nl", 2)]
    audits = dict(audit_topics(flow))
    assert all(each.clean for each in audits.values()), audits
    assert [(each.offsets, each.rows) for each in audits.values()] == [(5, 5), (5, 4)]


def values_of(bootstrap: str, topic: str, count: int) -> list[dict[str, Any]]:
    settings = {"bootstrap_servers": bootstrap, "isolation_level": "read_committed"}
    with Consumer(topic, **settings, offset_reset="earliest") as consumer:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            records = consumer.poll(timeout_ms=within(10_000))
            assert records, f"only {len(found)} of {count} are shown"
            found += [json.loads(record.value) for record in records]
        assert consumer.poll(timeout_ms=300) == [], "no more than that"
    return found
