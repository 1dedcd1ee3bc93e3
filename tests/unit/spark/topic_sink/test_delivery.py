"""Rows are acknowledged before a task ends, or it fails and says why. A broker, and no Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.blocking import Admin, Consumer
from penstock.client.errors import ClientError
from penstock.spark import dialogue
from penstock.spark.errors import BadOption
from penstock.spark.topic_sink import delivery
from penstock.spark.topic_sink.delivery import Landed, NotDelivered, Written, strides
from penstock.spark.topic_sink.records import NoTopic, by_topic
from penstock.spark.topic_sink.writers import TopicBatchWriter, TopicCommit, TopicStreamWriter
from penstock.testing import EmbeddedBroker, broker


@pytest.fixture(scope="module")
def shared_node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running
    dialogue.for_process().close()


@pytest.fixture
def node(shared_node: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    yield shared_node
    shared_node.clear_faults()


SCHEMA = StructType([StructField("value", StringType()), StructField("topic", StringType())])


def writer_of(node: EmbeddedBroker, schema: StructType = SCHEMA, **options: str) -> TopicBatchWriter:
    given = {"kafka.bootstrap.servers": node.bootstrap_servers}
    return TopicBatchWriter(given | {name.replace("__", "."): text for name, text in options.items()}, schema, False)


def write(writer: TopicBatchWriter, *batches: dict[str, Any]) -> Written:
    # Writers are pickled on their way to workers, messages on their way back.
    writer = pickle.loads(pickle.dumps(writer))
    message = pickle.loads(pickle.dumps(writer.write(pa.record_batch(batch) for batch in batches)))
    assert isinstance(message, TopicCommit)
    writer.commit([message, None])
    writer.abort([message, None])
    return message.written


def read(node: EmbeddedBroker, topic: str, count: int) -> list[Any]:
    with Consumer(topic, bootstrap_servers=node.bootstrap_servers, offset_reset="earliest") as consumer:
        found: list[Any] = []
        while len(found) < count:
            found += consumer.poll(timeout_ms=10_000, max_records=count)
        return sorted(found, key=lambda record: (record.partition, record.offset))


def test_every_column_arrives(node: EmbeddedBroker) -> None:
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.create_topic("all", partitions=3)
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    written = write(
        writer_of(node, topic="all"),
        {
            "key": ["k", None],
            "value": pa.array([b"v", None], pa.binary()),
            "headers": pa.array([[{"key": "h", "value": b"1"}], None], pa.list_(header)),
            "partition": pa.array([2, 2], pa.int32()),
            "timestamp": pa.array([moment, None], pa.timestamp("us", tz="Etc/UTC")),
            "offset": [17, 18],
        },
    )
    assert written == Written("", -1, 0, 2, (Landed("all", 2, 2, 0, 1),))
    first, second = read(node, "all", 2)
    assert (first.key, first.value, list(first.headers)) == (b"k", b"v", [("h", b"1")])
    assert first.timestamp == int(moment.timestamp() * 1000)
    assert (second.key, second.value, list(second.headers)) == (None, None, [])


def test_rows_go_where_their_column_says_unless_an_option_says_otherwise(node: EmbeddedBroker) -> None:
    rows = {"value": ["a", "b", "c"], "topic": ["one", "two", "one"]}
    written = write(writer_of(node), rows)
    assert [(landed.topic, landed.rows) for landed in written.landed] == [("one", 2), ("two", 1)]
    assert [record.value for record in read(node, "one", 2)] == [b"a", b"c"]
    assert {landed.topic for landed in write(writer_of(node, topic="three"), rows).landed} == {"three"}


def test_a_row_without_a_topic_is_told(node: EmbeddedBroker) -> None:
    with pytest.raises(NoTopic, match=r"1 rows have no topic .*row 1 .*option topic"):
        write(writer_of(node), {"value": ["a", "b"], "topic": ["one", None]})


def test_rows_keep_their_order_through_strides(node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "STRIDE_BYTES", 1_000)
    batches = [{"value": [f"{number}" for number in range(start, start + 100)]} for start in range(0, 1_000, 100)]
    written = write(writer_of(node, topic="ordered"), *batches)
    assert written.landed == (Landed("ordered", 0, 1_000, 0, 999),)
    assert [record.value for record in read(node, "ordered", 1_000)] == [b"%d" % number for number in range(1_000)]


def test_strides_hold_whole_batches_and_leave_out_empty_ones() -> None:
    def made(rows: int) -> tuple[str, pa.RecordBatch]:
        return "t", pa.record_batch({"n": pa.array(range(rows), pa.int64())})

    found = [[batch.num_rows for _, batch in stride] for stride in strides([made(5), made(0), made(9), made(1)], 80)]
    assert found == [[5, 9], [1]]


def test_no_rows_are_no_trouble(node: EmbeddedBroker) -> None:
    assert write(writer_of(node)) == Written("", -1, 0, 0, ())


def test_a_topic_column_may_be_of_large_strings() -> None:
    batch = pa.record_batch({"value": ["a", "b"], "topic": pa.array(["x", "y"], pa.large_string())})
    assert [(topic, rows.to_pylist()) for topic, rows in by_topic(batch, None)] == [
        ("x", [{"value": "a"}]),
        ("y", [{"value": "b"}]),
    ]


# Trouble.


@pytest.mark.parametrize("code", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"])
def test_what_passes_is_tried_again(node: EmbeddedBroker, code: str) -> None:
    topic = f"again-{code}"
    write(writer_of(node, topic=topic), {"value": ["a"]})
    node.fail(api="Produce", code=code, times=2)
    assert write(writer_of(node, topic=topic), {"value": ["b"]}).rows == 1
    assert [record.value for record in read(node, topic, 2)] == [b"a", b"b"]


def test_what_is_refused_names_topic_partition_and_cause_and_the_next_task_has_another_producer(
    node: EmbeddedBroker,
) -> None:
    writer = writer_of(node, topic="refused")
    write(writer, {"value": ["a"]})
    node.fail(api="Produce", code="TOPIC_AUTHORIZATION_FAILED", times=1)
    with pytest.raises(NotDelivered, match=r"topic 'refused': .*refused-0.*TOPIC_AUTHORIZATION_FAILED") as told:
        write(writer, {"value": ["b"]})
    assert isinstance(told.value.__cause__, ClientError)
    assert write(writer, {"value": ["c"]}).rows == 1


def test_a_record_that_is_too_large_is_told(node: EmbeddedBroker) -> None:
    with pytest.raises(NotDelivered, match="topic 'large'"):
        write(writer_of(node, topic="large", kafka__max__request__size="1000"), {"value": ["x" * 5_000]})


def test_a_broker_that_nobody_reaches_ends_a_task_in_time() -> None:
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "topic": "t",
        "kafka.max.block.ms": "2000",
        "kafka.retry.backoff.ms": "10",
    }
    writer = TopicBatchWriter(options, SCHEMA, False)
    with pytest.raises(NotDelivered, match=r"topic 't': .*127\.0\.0\.1:1"):
        writer.write(iter([pa.record_batch({"value": ["a"]})]))


# What the driver refuses.


def test_topics_cannot_be_overwritten(node: EmbeddedBroker) -> None:
    options = {"kafka.bootstrap.servers": node.bootstrap_servers, "topic": "t"}
    with pytest.raises(BadOption, match=r"mode\('append'\)"):
        TopicBatchWriter(options, SCHEMA, True)


def test_columns_are_checked_before_anything_runs(node: EmbeddedBroker) -> None:
    options = {"kafka.bootstrap.servers": node.bootstrap_servers, "topic": "t"}
    with pytest.raises(BadOption, match="column 'value' is int"):
        TopicStreamWriter(options, StructType([StructField("value", IntegerType())]))
