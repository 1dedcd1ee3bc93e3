"""Batch reads beside a plain consumer: the same records, whatever is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.blocking import Admin, Producer
from tests.patience import wait_for
from tests.spark.source_rows import Plain, consumed, plain, read

T = 1_700_000_000_000


@pytest.fixture(scope="module")
def orders(bootstrap: str) -> str:
    """Three partitions of 40 records, one a second; keys, values and headers that may be null or empty."""
    name = "source-batch-orders"
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(name, partitions=3)
        admin.create_topic(f"{name}-eu", partitions=1)
        for number in range(120):
            producer.send(
                name,
                None if number % 11 == 0 else b"value %d" % number * (number % 4),
                key=None if number % 7 == 0 else b"key %d" % (number % 5),
                partition=number % 3,
                timestamp=T + 1000 * (number // 3),
                headers=[("a", b"1"), ("a", None), ("ü", b"")][: number % 4],
            )
        producer.send(f"{name}-eu", b"one", timestamp=T)
        producer.flush()
    return name


@pytest.fixture(scope="module")
def records(bootstrap: str, orders: str) -> list[Plain]:
    found = consumed(bootstrap, orders)
    assert len(found) == 120
    return found


def test_rows_are_the_records(spark: SparkSession, bootstrap: str, orders: str, records: list[Plain]) -> None:
    frame = read(spark, bootstrap, subscribe=orders, includeHeaders="true")
    assert frame.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    rows = frame.collect()
    assert plain(rows) == records
    assert {row.timestampType for row in rows} == {0}


def offsets(orders: str, **by_partition: int) -> str:
    return json.dumps({orders: {name.removeprefix("p"): offset for name, offset in by_partition.items()}})


CASES: dict[str, tuple[dict[str, str], Callable[[Plain], bool]]] = {
    "assign": ({"assign": '{"ORDERS": [0, 2]}'}, lambda r: r.partition != 1),
    "a pattern": ({"subscribePattern": "^source-batch-orders$"}, lambda r: True),
    "offsets for some": ({"startingOffsets": '{"ORDERS": {"1": 33}}'}, lambda r: r.partition != 1 or r.offset >= 33),
    "from and to": (
        {"startingOffsets": '{"ORDERS": {"0": 5, "2": -2}}', "endingOffsets": '{"ORDERS": {"0": 9, "1": -1}}'},
        lambda r: r.partition != 0 or 5 <= r.offset < 9,
    ),
    "from a time": ({"startingTimestamp": str(T + 30_000)}, lambda r: r.timestamp_ms >= T + 30_000),
    "between times": (
        {"startingTimestamp": str(T + 5_500), "endingTimestamp": str(T + 9_000)},
        lambda r: T + 6_000 <= r.timestamp_ms < T + 9_000,
    ),
    "times by partition": (
        {
            "startingOffsetsByTimestamp": json.dumps({"ORDERS": {"0": T + 39_000, "1": T + 38_000}}),
            "endingOffsetsByTimestamp": json.dumps({"ORDERS": {"1": T + 99_000, "2": T + 1_000}}),
        },
        lambda r: r.offset >= {0: 39, 1: 38, 2: 0}[r.partition] and (r.partition != 2 or r.offset < 1),
    ),
    "split": ({"minPartitions": "7"}, lambda r: True),
    "split small": ({"maxRecordsPerPartition": "25"}, lambda r: True),
    "committed only": (
        {"kafka.isolation.level": "read_committed", "kafka.max.partition.fetch.bytes": "200"},
        lambda r: True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_for_is_what_comes(
    spark: SparkSession, bootstrap: str, orders: str, records: list[Plain], case: str
) -> None:
    given, wanted = CASES[case]
    options = {name: value.replace("ORDERS", orders) for name, value in given.items()}
    if not {"assign", "subscribePattern"} & options.keys():
        options["subscribe"] = orders
    frame = read(spark, bootstrap, includeHeaders="true", **options)
    assert plain(frame.collect()) == [record for record in records if wanted(record)]
    if case.startswith("split"):
        assert frame.rdd.getNumPartitions() == {"split": 7, "split small": 6}[case]


def test_only_the_columns_that_are_wanted(
    spark: SparkSession, bootstrap: str, orders: str, records: list[Plain]
) -> None:
    frame = read(spark, bootstrap, subscribe=f"{orders},{orders}-eu", columns="offset,topic")
    assert frame.columns == ["offset", "topic"]
    wanted = sorted([(record.offset, orders) for record in records] + [(0, f"{orders}-eu")])
    assert sorted(tuple(row) for row in frame.collect()) == wanted


def test_a_small_read_is_one_task_and_an_empty_one_has_no_rows(
    spark: SparkSession, bootstrap: str, orders: str, topic: str
) -> None:
    assert read(spark, bootstrap, subscribe=orders).rdd.getNumPartitions() == 1
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=5)
    assert read(spark, bootstrap, subscribe=topic).count() == 0
    assert read(spark, bootstrap, subscribePattern=f"{topic}-not").count() == 0


def test_times_of_the_broker_and_records_of_five_megabytes(spark: SparkSession, bootstrap: str, topic: str) -> None:
    configs = {"max.message.bytes": "6000000", "message.timestamp.type": "LogAppendTime"}
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, partitions=2, configs=configs)
    sizes = [0, 10, 5 << 20, 10, 5 << 20, 1 << 20]
    with Producer(bootstrap_servers=bootstrap, max_request_size=7_000_000) as producer:
        for number, size in enumerate(sizes):
            producer.send(topic, bytes([number]) * size, partition=number % 2)
        producer.flush()
    rows = read(spark, bootstrap, subscribe=topic).collect()
    assert plain(rows) == consumed(bootstrap, topic)
    assert sorted(len(row.value) for row in rows) == sorted(sizes)
    assert {row.timestampType for row in rows} == {1}


COMPACTING_BROKER = """
import sys
from penstock.testing import broker
with broker({"log.cleaner.backoff.ms": 100}) as node:
    print(node.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def compacted() -> Iterator[tuple[str, str]]:
    """A broker with a topic that has really been compacted.

    It is a process of its own: compaction forks one, and what py4j does in a child that was forked from the driver
    closes the driver's connection to the JVM.
    """
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"}
    command, pipe = [sys.executable, "-c", COMPACTING_BROKER], subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        bootstrap, count = process.stdout.readline().strip(), 4000
        with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
            admin.create_topic("compacted", partitions=1, configs=configs)
            values = [b"%06d" % number + bytes(900) for number in range(count)]
            keys = [b"key %d" % (number % 50) for number in range(count)]
            producer.send_batch("compacted", values, keys=keys).result()
            wait_for("compaction", lambda: len(consumed(bootstrap, "compacted")) <= count - 1000, timeout_s=60)
        yield bootstrap, "compacted"


def test_a_compacted_topic_gives_what_is_left_of_it(spark: SparkSession, compacted: tuple[str, str]) -> None:
    bootstrap, topic = compacted
    frame = read(spark, bootstrap, subscribe=topic, minPartitions="5")
    rows = plain(frame.collect())
    left = consumed(bootstrap, topic)
    # The cleaner may have gone on between the two: what it took since is all that may differ.
    assert set(left) <= set(rows)
    assert len(rows) < 4000


def test_a_trimmed_topic_begins_where_it_begins(spark: SparkSession, bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        admin.create_topic(topic, partitions=1)
        producer.send_batch(topic, [b"%d" % number for number in range(10)]).result()
        admin.trim_topic(topic, {0: 6})
    left = consumed(bootstrap, topic)
    assert [record.offset for record in left] == [6, 7, 8, 9]
    assert plain(read(spark, bootstrap, subscribe=topic).collect()) == left
    below = {"subscribe": topic, "startingOffsets": offsets(topic, p0=2)}
    with pytest.raises(PySparkException, match=r"4 offsets from 2 to 6 are gone.*failOnDataLoss=false"):
        read(spark, bootstrap, **below).collect()
    assert plain(read(spark, bootstrap, failOnDataLoss="false", **below).collect()) == left
    beyond = {"subscribe": topic, "endingOffsets": offsets(topic, p0=12)}
    with pytest.raises(PySparkException, match=r"ends at 10, before 12 where endingOffsets has it end"):
        read(spark, bootstrap, **beyond).collect()
    assert plain(read(spark, bootstrap, failOnDataLoss="false", **beyond).collect()) == left


def test_what_cannot_be_is_told_in_one_sentence(spark: SparkSession, bootstrap: str, orders: str, topic: str) -> None:
    with pytest.raises(PySparkException, match="did you mean 'startingOffsets'"):
        read(spark, bootstrap, subscribe=orders, startingOffset="earliest")
    with pytest.raises(PySparkException, match=f"topic '{topic}' does not exist on .*create it"):
        read(spark, bootstrap, subscribe=topic, fetchOffset__retryIntervalMs="1").collect()
    with pytest.raises(PySparkException, match="startingOffsets=latest leaves a batch read nothing to read"):
        read(spark, bootstrap, subscribe=orders, startingOffsets="latest").collect()
    with pytest.raises(PySparkException, match=r"no broker answers at 127\.0\.0\.1:1 .*Is it running"):
        read(spark, "127.0.0.1:1", subscribe=orders, kafka__default__api__timeout__ms="200").collect()
    own = spark.read.format("penstock").schema("a INT").option("kafka.bootstrap.servers", bootstrap)
    with pytest.raises(PySparkException, match="raw records have the columns key, value"):
        own.option("subscribe", orders).load().collect()
