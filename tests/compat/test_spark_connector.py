"""Spark's own Kafka connector reads and writes our broker, and our source and sink do what the connector does.

Every comparison is of whole tables: topic, partition, offset, timestamp, its type, key, value, headers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession

from tests.compat.apache.node import ApacheKafka
from tests.compat.conftest import target_class
from tests.compat.contents import EAGER, read_contents
from tests.compat.spark.rows import JVM, OURS, Row, Stream, batch, rows_of, rows_of_contents
from tests.compat.spark.session import judging_session
from tests.compat.spark.topics import START_MS, STEP_MS, write_topics
from tests.patience import within

pytestmark = [pytest.mark.compat, pytest.mark.timeout(240)]

VISIBLE = "^[^_].*"
"""Neither the broker's own topics nor the one where our queries tell how far they are."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = judging_session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def bootstrap(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node whose topics hold everything that is hard to read; tests add topics and leave these alone."""
    with target_class(pytestconfig)(tmp_path_factory.mktemp("hard"), properties=EAGER) as node:
        write_topics(node.bootstrap)
        yield node.bootstrap


@pytest.fixture(scope="module")
def consumed(bootstrap: str) -> list[Row]:
    """What a plain consumer reads of those topics."""
    return rows_of_contents(read_contents(bootstrap))


@pytest.fixture
def topic() -> str:
    """A name that the pattern of the other tests does not match."""
    return f"_of-one-test-{uuid.uuid4().hex[:8]}"


def offsets(**by_topic: dict[str, int]) -> str:
    return json.dumps({name.replace("_", "-"): places for name, places in by_topic.items()})


def at(step: float) -> int:
    return int(START_MS + step * STEP_MS)


SEVERAL = "codec-none,codec-zstd,trimmed,compacted,append-time"
BATCH_READS: dict[str, dict[str, str]] = {
    "by pattern, with headers": {"subscribePattern": VISIBLE, "includeHeaders": "true"},
    "by pattern that a part of the name fits": {"subscribePattern": "odec-[gls]"},
    "by names": {"subscribe": SEVERAL},
    "by names with blanks": {"subscribe": "codec-none , codec-lz4"},
    "by partitions": {"assign": '{"idempotent":[0,2],"codec-gzip":[1]}', "includeHeaders": "true"},
    "an empty topic": {"subscribe": "empty"},
    "a topic that has grown": {"subscribe": "grown"},
    "from and to numbers": {
        "subscribe": "idempotent",
        "startingOffsets": offsets(idempotent={"0": 10, "1": -2, "2": 7}),
        "endingOffsets": offsets(idempotent={"0": 200, "1": 1, "2": -1}),
    },
    "an empty range": {
        "subscribe": "trimmed",
        "startingOffsets": offsets(trimmed={"0": 70}),
        "endingOffsets": offsets(trimmed={"0": 70}),
    },
    "through the holes of a compacted log": {
        "subscribe": "compacted",
        "startingOffsets": offsets(compacted={"0": 3}),
        "endingOffsets": offsets(compacted={"0": 205}),
    },
    "a hole of a compacted log": {
        "subscribe": "compacted",
        "startingOffsets": offsets(compacted={"0": 3}),
        "endingOffsets": offsets(compacted={"0": 20}),
    },
    "from one time to another, everywhere": {
        "subscribe": "timed",
        "startingTimestamp": str(at(10)),
        "endingTimestamp": str(at(40.5)),
    },
    "from times of partitions": {
        "subscribe": "timed",
        "startingOffsetsByTimestamp": json.dumps({"timed": {"0": at(3), "1": at(4.002)}}),
        "endingOffsetsByTimestamp": json.dumps({"timed": {"0": at(50), "1": at(20)}}),
        "includeHeaders": "true",
    },
    "a time wins over numbers": {
        "subscribe": "timed",
        "startingOffsets": offsets(timed={"0": 0, "1": 0}),
        "startingTimestamp": str(at(30)),
        "endingTimestamp": str(at(1_000)),
    },
    "from a time after the end, taken as the end": {
        "subscribe": "timed",
        "startingTimestamp": str(at(1_000)),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "records of five megabytes": {"subscribe": "long"},
    "in more tasks than partitions": {"subscribe": "idempotent,codec-snappy", "minPartitions": "9"},
    "in tasks of at most so many records": {"subscribe": "idempotent", "maxRecordsPerPartition": "100"},
    "only what is committed": {"subscribe": SEVERAL, "kafka.isolation.level": "read_committed"},
    "with settings of the client": {"subscribe": "codec-none", "kafka.max.poll.records": "7", "kafka.client.id": "me"},
    "with names in capitals": {"SUBSCRIBE": "codec-none", "STARTINGOFFSETS": "earliest", "INCLUDEHEADERS": "TRUE"},
}


EMPTY = ("an empty topic", "an empty range", "a hole of a compacted log", "from a time after the end, taken as the end")

STREAM_READS: dict[str, dict[str, str]] = {
    "by pattern, with headers": {
        "subscribePattern": VISIBLE,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    },
    "a little at a time": {
        "subscribe": "idempotent,codec-lz4,trimmed,compacted",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "400",
    },
    "from numbers": {
        "assign": '{"idempotent":[0,1]}',
        "startingOffsets": offsets(idempotent={"0": 250, "1": -2}),
    },
    "from a time": {"subscribe": "timed", "startingTimestamp": str(at(30))},
    "from the end": {"subscribe": "timed"},
}

REFUSED: dict[str, dict[str, str]] = {
    "nothing to read": {},
    "two ways to say what": {"subscribe": "timed", "subscribePattern": "t.*"},
    "a start at the end": {"subscribe": "timed", "startingOffsets": "latest"},
    "an end at the start": {"subscribe": "timed", "endingOffsets": "earliest"},
    "a setting that is ours to choose": {"subscribe": "timed", "kafka.auto.offset.reset": "latest"},
    "a deserializer": {"subscribe": "timed", "kafka.value.deserializer": "org.example.Any"},
    "commits by the client": {"subscribe": "timed", "kafka.enable.auto.commit": "true"},
    "interceptors": {"subscribe": "timed", "kafka.interceptor.classes": "org.example.Any"},
    "an offset that is none": {"subscribe": "timed", "startingOffsets": '{"timed":{"0":"x"}}'},
    "a time after the end": {"subscribe": "timed", "startingTimestamp": str(at(1_000))},
    "no such topic": {"subscribe": "nobody-made-this"},
}


def test_the_connector_reads_what_a_consumer_reads(spark: SparkSession, bootstrap: str, consumed: list[Row]) -> None:
    found = batch(spark, JVM, bootstrap, BATCH_READS["by pattern, with headers"])
    assert {row[0] for row in consumed} >= {"timed", "long", "compacted", "trimmed", "append-time"}
    assert found == consumed


@pytest.mark.parametrize("case", BATCH_READS)
def test_a_batch_read_gives_the_rows_of_the_connector(spark: SparkSession, bootstrap: str, case: str) -> None:
    theirs = batch(spark, JVM, bootstrap, BATCH_READS[case])
    assert bool(theirs) is (case not in EMPTY)
    assert batch(spark, OURS, bootstrap, BATCH_READS[case]) == theirs


@pytest.mark.parametrize("case", STREAM_READS)
def test_a_stream_gives_the_rows_of_the_connector(
    spark: SparkSession, bootstrap: str, tmp_path: Path, case: str
) -> None:
    theirs, ours = (Stream(spark, by, bootstrap, STREAM_READS[case], tmp_path) for by in (JVM, OURS))
    rows = theirs.drain()
    assert rows or case == "from the end"
    assert ours.drain() == rows
    if limit := STREAM_READS[case].get("maxOffsetsPerTrigger"):
        assert len(ours.batches) > 1
        assert max(ours.batches) <= int(limit)


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_connector_refuses_is_refused(spark: SparkSession, bootstrap: str, case: str) -> None:
    for by in (JVM, OURS):
        with pytest.raises(Exception) as refused:  # noqa: PT011 (each has its own way to say no)
            batch(spark, by, bootstrap, REFUSED[case])
        assert str(refused.value)


def test_both_have_the_same_columns(spark: SparkSession, bootstrap: str) -> None:
    for headers in ("false", "true"):
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "timed", "includeHeaders": headers}
        theirs, ours = (spark.read.format(by).options(**options).load().schema for by in (JVM, OURS))
        assert [(field.name, field.dataType) for field in ours] == [(field.name, field.dataType) for field in theirs]


# --- topics that change under a stream ---


@pytest.fixture
def changing(bootstrap: str, topic: str) -> Iterator[Callable[..., None]]:
    """Creates the topic with two partitions; the result produces `count` records into one of its partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(within(30))

    def fill(partition: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition)
        assert producer.flush(within(30)) == 0

    yield fill
    admin.delete_topics([topic])[topic].result(within(30))


@pytest.mark.parametrize("by", [JVM, OURS])
def test_a_partition_that_is_new_is_read_from_its_start(
    spark: SparkSession, bootstrap: str, topic: str, changing: Callable[..., None], tmp_path: Path, by: str
) -> None:
    changing(0, 20)
    stream = Stream(spark, by, bootstrap, {"subscribe": topic, "startingOffsets": "earliest"}, tmp_path)
    assert len(stream.drain()) == 20
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(within(30))
    changing(2, 15)
    changing(1, 5)
    wanted = batch(spark, JVM, bootstrap, {"subscribe": topic})
    assert len(wanted) == 40
    assert stream.drain() == wanted


@pytest.mark.parametrize("by", [JVM, OURS])
@pytest.mark.parametrize("fail", ["true", "false"])
def test_what_was_trimmed_before_it_was_read_is_a_loss(
    spark: SparkSession, bootstrap: str, topic: str, changing: Callable[..., None], tmp_path: Path, by: str, fail: str
) -> None:
    changing(0, 20)
    options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": fail}
    stream = Stream(spark, by, bootstrap, options, tmp_path)
    before = stream.drain()
    changing(0, 20)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 30)])[TopicPartition(topic, 0)].result(within(30))
    if fail == "true":
        with pytest.raises(Exception, match=r"(?i)data.?loss|lost|failOnDataLoss"):
            stream.drain()
    else:
        found = stream.drain()
        assert found[:20] == before
        assert [row[2] for row in found] == [*range(20), *range(30, 40)]


# --- transactions ---


def transact(producer: Producer, topic: str, words: str, end: Callable[..., None]) -> None:
    producer.begin_transaction()
    for number in range(20):
        producer.produce(topic, f"{words} {number}", partition=number % 2)
    assert producer.flush(within(30)) == 0
    end(within(30))


def test_transactions_are_read_as_the_connector_reads_them(
    spark: SparkSession, bootstrap: str, topic: str, changing: Callable[..., None], tmp_path: Path
) -> None:
    changing(0, 5)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(within(30))
    for number in range(3):
        transact(producer, topic, f"committed {number}", producer.commit_transaction)
        transact(producer, topic, f"aborted {number}", producer.abort_transaction)
    # The log ends with aborted records and their markers; ours leaves them out unless it is told to read everything.
    committed = {"subscribe": topic, "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    everything = {**committed, "kafka.isolation.level": "read_uncommitted"}
    theirs = batch(spark, JVM, bootstrap, committed)
    assert len(theirs) == 5 + 60
    assert batch(spark, OURS, bootstrap, {"subscribe": topic}) == theirs
    shown = batch(spark, JVM, bootstrap, everything)
    assert len(shown) == 5 + 120
    assert batch(spark, OURS, bootstrap, everything) == shown
    # Batches that end inside of transactions, some of them with nothing to show.
    for by in (JVM, OURS):
        stream = Stream(spark, by, bootstrap, {**committed, "maxOffsetsPerTrigger": "30"}, tmp_path)
        assert stream.drain() == theirs, by


# --- sinks ---


def to_write(spark: SparkSession) -> DataFrame:
    """Rows for two partitions: null and empty keys and values, no, empty, null and repeated headers."""
    return spark.sql("""
        select
          cast(id % 2 as int) as partition,
          case id % 3
            when 0 then null
            when 1 then cast('' as binary)
            else cast(concat('key-', id) as binary)
          end as key,
          case id % 5
            when 0 then null
            when 1 then cast('' as binary)
            else cast(repeat(cast(id as string), 1 + cast(id as int)) as binary)
          end as value,
          case id % 4
            when 0 then null
            when 1 then array(named_struct('key', 'a', 'value', cast('1' as binary)))
            when 2 then array(named_struct('key', 'a', 'value', cast(null as binary)))
            else array(
              named_struct('key', 'a', 'value', cast('' as binary)),
              named_struct('key', 'a', 'value', cast('2' as binary)))
          end as headers
        from range(200)
    """)


def kept(rows: list[Row]) -> list[Row]:
    """Without offsets and times, which the writing decides."""
    return sorted(((row[1], *row[5:]) for row in rows), key=repr)


def wanted(frame: DataFrame) -> list[Row]:
    places = frame.selectExpr(
        "'' as topic", "partition", "0L as offset", "timestamp_seconds(0) as timestamp", "0 as timestampType",
        "key", "value", "headers",
    )  # fmt: skip
    return kept(rows_of(places))


@pytest.mark.parametrize("by", [JVM, OURS])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_what_a_sink_writes_is_what_both_sources_read(
    spark: SparkSession, bootstrap: str, topic: str, changing: Callable[..., None], by: str, compression: str
) -> None:
    frame = to_write(spark)
    settings = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.compression.type": compression}
    frame.write.format(by).options(**settings).mode("append").save()
    for reader in (JVM, OURS):
        found = batch(spark, reader, bootstrap, {"subscribe": topic, "includeHeaders": "true"})
        assert kept(found) == wanted(frame), f"written by {by}, read by {reader}"


@pytest.mark.parametrize("by", [JVM, OURS])
@pytest.mark.parametrize("reader", [JVM, OURS])
def test_a_stream_from_a_topic_to_a_topic_carries_every_record(
    spark: SparkSession,
    bootstrap: str,
    consumed: list[Row],
    topic: str,
    changing: Callable[..., None],
    tmp_path: Path,
    by: str,
    reader: str,
) -> None:
    options = {"subscribe": "timed", "startingOffsets": "earliest", "includeHeaders": "true"}
    source = spark.readStream.format(reader).option("kafka.bootstrap.servers", bootstrap).options(**options).load()
    settings = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": topic,
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    columns = source.select("key", "value", "headers", "partition")
    query = columns.writeStream.format(by).options(**settings).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    found = batch(spark, JVM, bootstrap, {"subscribe": topic, "includeHeaders": "true"})
    assert kept(found) == kept([row for row in consumed if row[0] == "timed"])


BAD_WRITES: dict[str, tuple[str, Mapping[str, str]]] = {
    "no topic": ("select cast('v' as binary) as value", {}),
    "a null topic": ("select cast('v' as binary) as value, cast(null as string) as topic", {}),
    "no value": ("select cast('k' as binary) as key", {"topic": "any"}),
    "a value that is a number": ("select 7 as value", {"topic": "any"}),
    "a setting that is ours to choose": (
        "select cast('v' as binary) as value",
        {"topic": "any", "kafka.value.serializer": "org.example.Any"},
    ),
}


@pytest.mark.parametrize("case", BAD_WRITES)
def test_what_the_connectors_sink_refuses_is_refused(spark: SparkSession, bootstrap: str, case: str) -> None:
    query, options = BAD_WRITES[case]
    for by in (JVM, OURS):
        writer = spark.sql(query).write.format(by).option("kafka.bootstrap.servers", bootstrap).options(**options)
        with pytest.raises(Exception) as refused:  # noqa: PT011
            writer.mode("append").save()
        assert str(refused.value)


# --- the other way round ---


def test_our_source_and_sink_serve_apache_kafka(spark: SparkSession, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "apache", properties=EAGER) as node:
        write_topics(node.bootstrap)
        every = BATCH_READS["by pattern, with headers"]
        theirs = batch(spark, JVM, node.bootstrap, every)
        assert theirs == rows_of_contents(read_contents(node.bootstrap))
        assert batch(spark, OURS, node.bootstrap, every) == theirs
        streamed = Stream(spark, OURS, node.bootstrap, STREAM_READS["a little at a time"], tmp_path).drain()
        assert streamed == batch(spark, JVM, node.bootstrap, {"subscribe": "idempotent,codec-lz4,trimmed,compacted"})
        frame = to_write(spark)
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic("written", 2, 1)])["written"].result(within(30))
        settings = {"kafka.bootstrap.servers": node.bootstrap, "topic": "written"}
        frame.write.format(OURS).options(**settings).mode("append").save()
        found = batch(spark, JVM, node.bootstrap, {"subscribe": "written", "includeHeaders": "true"})
        assert kept(found) == wanted(frame)
