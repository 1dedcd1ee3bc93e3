"""Streaming reads: every record once, through limits, restarts, new partitions and topics that go and come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from penstock.blocking import Admin, Producer
from tests.patience import wait_for, within
from tests.spark.source_rows import WAIT_S, Stream, consumed, plain

Produce = Callable[..., None]
T = 1_700_000_000_000


def until(what: str, true: Callable[[], bool]) -> None:
    wait_for(what, true, timeout_s=WAIT_S)


def test_limited_batches_give_every_record_once_and_a_restart_goes_on(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(100):
            producer.send(
                topic,
                None if number % 9 == 0 else b"%d" % number,
                key=b"%d" % number if number % 2 else None,
                partition=(0, 0, 0, 1)[number % 4],
                headers=[("n", b"%d" % number)] if number % 3 else [],
            )
        producer.flush()
    options = {"subscribe": topic, "startingOffsets": "earliest", "includeHeaders": "true", "maxOffsetsPerTrigger": 40}
    first = Stream(spark, bootstrap, scratch, **options)
    assert plain(first.drain()) == consumed(bootstrap, topic)
    assert [len(rows) for _, rows in sorted(first.batches.items())] == [40, 40, 20]

    before = set(consumed(bootstrap, topic))
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_batch(topic, [b"later"] * 10, partition=2).result()
    # startingOffsets no longer counts: the checkpoint does.
    again = Stream(spark, bootstrap, scratch, **(options | {"startingOffsets": "latest"}))
    assert plain(again.drain()) == sorted(set(consumed(bootstrap, topic)) - before)


def test_starts_by_number_and_by_time_and_split_partitions(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=3)
        for partition in range(3):
            times = [T + number * 1000 for number in range(20)]
            producer.send_batch(topic, [b"%d" % at for at in times], timestamps=times, partition=partition).result()
    records = consumed(bootstrap, topic)
    by_number = Stream(
        spark,
        bootstrap,
        scratch / "number",
        assign=f'{{"{topic}": [0, 2]}}',
        startingOffsets=f'{{"{topic}": {{"0": 15, "2": -2}}}}',
        minPartitions=4,
        includeHeaders="true",
    )
    wanted = [record for record in records if record.offset >= {0: 15, 1: 99, 2: 0}[record.partition]]
    assert plain(by_number.drain()) == wanted
    by_time = Stream(
        spark,
        bootstrap,
        scratch / "time",
        subscribe=topic,
        startingTimestamp=T + 12_500,
        maxRecordsPerPartition=3,
        kafka__isolation__level="read_committed",
    )
    assert plain(by_time.drain()) == [record for record in records if record.timestamp_ms > T + 12_500]


def test_records_that_are_trimmed_before_they_are_read_are_left_out_if_the_user_chose_so(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": "false"}
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
        produce(topic, [b"read"] * 5)
        assert len(Stream(spark, bootstrap, scratch, **options).drain()) == 5
        produce(topic, [b"unread"] * 5)
        admin.trim_topic(topic, {0: 8})
    assert plain(Stream(spark, bootstrap, scratch, **options).drain()) == consumed(bootstrap, topic)


def test_a_crash_in_the_first_batch_loses_nothing_that_came_meanwhile(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    produce(topic, [b"before"] * 5)
    query = Stream(spark, bootstrap, scratch, subscribe=topic).start(broken=lambda batch_id: True)
    with pytest.raises(StreamingQueryException, match="broken on purpose"):
        query.awaitTermination(within(WAIT_S))
    produce(topic, [b"meanwhile"] * 20)
    restarted = Stream(spark, bootstrap, scratch, subscribe=topic)
    assert [bytes(row.value) for row in restarted.drain()] == [b"meanwhile"] * 20


def test_new_partitions_and_new_topics_appear_in_a_running_stream(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
        stream = Stream(spark, bootstrap, scratch, subscribePattern=f"^{topic}", queryName=topic)
        query = stream.start()
        until("the stream began", lambda: 0 in stream.batches)
        produce(topic, [b"old partition"] * 3)
        until("records came", lambda: len(stream.rows) == 3)
        admin.grow_topic(topic, 3)
        produce(topic, [b"new partition"] * 4, partition=2)
        until("the new partition was read", lambda: len(stream.rows) == 7)
        admin.create_topic(f"{topic}-b", partitions=2)
        produce(f"{topic}-b", [b"new topic"] * 5)
        until("the new topic was read", lambda: len(stream.rows) == 12)
        assert query.exception() is None
        query.stop()
    assert plain(stream.rows) == consumed(bootstrap, topic, f"{topic}-b")


def test_a_topic_that_is_deleted_and_made_anew(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    options = {"subscribe": topic, "startingOffsets": "earliest", "fetchOffset__retryIntervalMs": 1}
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
        produce(topic, [b"old"] * 5)
        assert len(Stream(spark, bootstrap, scratch, **options).drain()) == 5

        admin.delete_topic(topic)
        with pytest.raises(StreamingQueryException, match=f"topic '{topic}' is gone.*failOnDataLoss=false"):
            Stream(spark, bootstrap, scratch, **options).drain()

        admin.create_topic(topic, partitions=1)
        # More than there were: by offsets alone nobody would notice, and five records would be skipped.
        produce(topic, [b"new"] * 9)
        with pytest.raises(StreamingQueryException, match="was deleted and created anew"):
            Stream(spark, bootstrap, scratch, **options).drain()
        careless = Stream(spark, bootstrap, scratch, failOnDataLoss="false", **options)
        assert plain(careless.drain()) == consumed(bootstrap, topic)
        assert len(careless.rows) == 9


def test_a_waiting_stream_takes_what_there_is_when_time_is_up(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Produce
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=1)
    stream = Stream(spark, bootstrap, scratch, subscribe=topic, minOffsetsPerTrigger=10, maxTriggerDelay="300ms")
    query = stream.start()
    until("the stream began", lambda: 0 in stream.batches)
    produce(topic, [b"first"])
    until("the first record came", lambda: len(stream.rows) == 1)
    produce(topic, [b"few"] * 3)
    until("time was up", lambda: len(stream.rows) == 4)
    assert query.lastProgress is not None
    query.stop()
