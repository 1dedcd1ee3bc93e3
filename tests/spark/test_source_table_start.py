"""A read that begins where a lake table stands."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.blocking import Admin, Producer
from tests.patience import within
from tests.spark.source_rows import WAIT_S, consumed, plain, read
from tests.spark.starting import started


def test_a_lost_checkpoint_is_made_up_for_by_the_table_itself(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path
) -> None:
    table = scratch / "orders"

    def fill(checkpoint: str) -> None:
        stream = spark.readStream.format("penstock").option("kafka.bootstrap.servers", bootstrap)
        frame = stream.option("subscribe", topic).option("startingOffsets", f"table:{table}").load()
        writer = frame.writeStream.format("penstock-lake").option("path", str(table))
        writer = writer.option("checkpointLocation", str(scratch / checkpoint))
        query = started(writer.trigger(availableNow=True))
        assert query.awaitTermination(within(WAIT_S))

    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=2)
        producer.send_batch(topic, [b"%d" % number for number in range(20)], partition=0).result()
        fill("first")
        before = consumed(bootstrap, topic)
        producer.send_batch(topic, [b"%d" % number for number in range(10)], partition=0).result()
        producer.send_batch(topic, [b"%d" % number for number in range(5)], partition=1).result()
        tail = read(spark, bootstrap, subscribe=topic, startingOffsets=f"table:{table}")
        assert plain(tail.collect()) == sorted(set(consumed(bootstrap, topic)) - set(before))
        fill("second")
    rows = spark.read.format("penstock-lake").option("path", str(table)).load().collect()
    assert plain(rows) == consumed(bootstrap, topic)
    assert len(rows) == 35
