"""A task gives every record of its spans as a row, or tells what became of it. A broker, and no Spark."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from penstock.client.admin import Admin
from penstock.client.producer import Producer
from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark import dialogue
from penstock.spark.errors import DataLost, Undecodable
from penstock.spark.progress import groups, reports
from penstock.spark.progress.reports import SpanReport
from penstock.spark.running_query import RunningQuery, name_in
from penstock.spark.source import reading, schemas
from penstock.spark.source.decoded_rows import merged
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.tasks import PublishedStart, TaskSpans
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running
    dialogue.for_process().close()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a task of a streaming query publishes."""
    found: list[Any] = []
    monkeypatch.setattr(reading, "running_query", lambda: RunningQuery("q-id", 7, "orders"))
    monkeypatch.setattr(reports, "publish", lambda settings, given: found.extend(given))
    monkeypatch.setattr(groups, "publish_offsets", lambda settings, name, offsets: found.append((name, offsets)))
    return found


def options_of(node: EmbeddedBroker, **more: str) -> SourceOptions:
    given = {"subscribe": "any", "kafka.bootstrap.servers": node.bootstrap_servers, **more}
    return SourceOptions.of({name.replace("__", "."): value for name, value in given.items()}, streaming=True)


QUICK = {"kafka__default__api__timeout__ms": "300", "kafka__fetch__max__wait__ms": "20"}


def rows_of(
    options: SourceOptions, *spans: Span, schema: StructType | None = None, publish: PublishedStart | None = None
) -> list[dict[str, Any]]:
    schema = schema or schemas.raw_schema(options)
    batches = list(reading.read_task(TaskSpans(spans, publish), options, schema))
    target = to_arrow_schema(schema, timezone="UTC")
    assert all(target.equals(batch.schema, check_metadata=True) for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def produce(node: EmbeddedBroker, topic: str, values: list[bytes | None], **named: Any) -> None:
    async def main() -> None:
        async with Producer(node.bootstrap_servers) as producer:
            for value in values:
                producer.send(topic, value, **named)

    asyncio.run(main())


def administer(node: EmbeddedBroker, work: Any) -> Any:
    async def main() -> Any:
        async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            return await work(admin)

    return asyncio.run(main())


def test_raw_rows_are_records_as_the_connector_gives_them(node: EmbeddedBroker) -> None:
    produce(node, "raw", [b"a"], key=b"k", timestamp=1_234, headers=[("h", b"1"), ("n", None)])
    produce(node, "raw", [None, b""], timestamp=5_000)
    options = options_of(node, includeHeaders="true")
    common = {"topic": "raw", "partition": 0, "timestampType": 0}
    assert rows_of(options, Span("raw", "", 0, 0, 3)) == [
        common
        | {
            "key": b"k",
            "value": b"a",
            "offset": 0,
            "timestamp": datetime.fromtimestamp(1.234, UTC),
            "headers": [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
        },
        common
        | {"key": None, "value": None, "offset": 1, "timestamp": datetime.fromtimestamp(5, UTC), "headers": None},
        common | {"key": None, "value": b"", "offset": 2, "timestamp": datetime.fromtimestamp(5, UTC), "headers": None},
    ]


def test_a_choice_of_columns_is_given_in_its_order(node: EmbeddedBroker) -> None:
    produce(node, "chosen", [b"a", b"b"])
    assert rows_of(options_of(node, columns="offset,value"), Span("chosen", "", 0, 0, 2)) == [
        {"offset": 0, "value": b"a"},
        {"offset": 1, "value": b"b"},
    ]


def test_times_that_no_calendar_has_stay_the_last_that_can_be_counted(node: EmbeddedBroker) -> None:
    administer(
        node, lambda admin: admin.create_topic("late", 1, configs={"message.timestamp.after.max.ms": str(2**63 - 1)})
    )
    produce(node, "late", [b"a"], timestamp=2**62)
    (batch,) = reading.read_task(
        TaskSpans((Span("late", "", 0, 0, 1),)),
        options_of(node, columns="timestamp"),
        schemas.raw_schema(options_of(node, columns="timestamp")),
    )
    assert batch.column(0).cast(pa.int64()).to_pylist() == [(2**63 - 1) // 1000 * 1000]


def test_many_small_spans_become_few_batches(node: EmbeddedBroker) -> None:
    administer(node, lambda admin: admin.create_topic("small", 20))
    for partition in range(20):
        produce(node, "small", [b"x"] * 5, partition=partition)
    options = options_of(node)
    task = TaskSpans(tuple(Span("small", "", partition, 0, 5) for partition in range(20)))
    batches = list(reading.read_task(task, options, schemas.raw_schema(options)))
    assert [batch.num_rows for batch in batches] == [100]
    assert sorted(set(batches[0].column("partition").to_pylist())) == list(range(20))


def test_merging_keeps_rows_in_order_and_large_batches_whole() -> None:
    def made(start: int, count: int) -> pa.RecordBatch:
        return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})

    given = [made(0, 10), made(10, 0), made(10, 10), made(20, 1_000), made(1_020, 10)]
    found = list(merged(given, least_bytes=800))
    assert [row for batch in found for row in batch.column(0).to_pylist()] == list(range(1_030))
    assert [batch.num_rows for batch in found] == [20, 1_000, 10]
    assert found[1] is given[3]


# What is gone.


def test_offsets_before_the_log_start_are_lost_and_named_before_any_row(node: EmbeddedBroker) -> None:
    produce(node, "trimmed", [b"x"] * 100)
    administer(node, lambda admin: admin.trim_topic("trimmed", {0: 37}))
    rows = reading.read_task(
        TaskSpans((Span("trimmed", "", 0, 10, 60),)), options := options_of(node), schemas.raw_schema(options)
    )
    with pytest.raises(DataLost, match=r"trimmed-0: 27 offsets from 10 to 37 are gone.*failOnDataLoss=false"):
        next(rows)


def test_offsets_before_the_log_start_may_be_left_out_with_a_warning(
    node: EmbeddedBroker, caplog: pytest.LogCaptureFixture, told: list[Any]
) -> None:
    produce(node, "left-out", [b"x"] * 100)
    administer(node, lambda admin: admin.trim_topic("left-out", {0: 37}))
    with caplog.at_level(logging.INFO):
        rows = rows_of(options_of(node, failOnDataLoss="false"), Span("left-out", "", 0, 10, 60))
    assert [row["offset"] for row in rows] == list(range(37, 60))
    assert "27 offsets from 10 to 37 are gone" in caplog.text
    assert "27 of the offsets 10 to 60 hold no record: 10-36" in caplog.text
    assert told == [SpanReport("q-id", 7, "left-out", "", 0, 10, 60, 23, 0, 27, ((10, 37),))]


@pytest.mark.parametrize("how", ["cut off", "made anew", "deleted"])
def test_a_span_that_is_gone_is_a_loss_or_left_out_and_the_others_are_read(
    node: EmbeddedBroker, told: list[Any], how: str
) -> None:
    topic = how.replace(" ", "-")
    old = administer(node, lambda admin: admin.create_topic(topic, 2))
    produce(node, topic, [b"x"] * 5, partition=1)
    produce(node, f"other-{topic}", [b"y"] * 10)
    if how != "cut off":
        administer(node, lambda admin: admin.delete_topic(topic))
    if how == "made anew":
        administer(node, lambda admin: admin.create_topic(topic, 2))
    spans = Span(topic, old, 1, 0, 9), Span(f"other-{topic}", "", 0, 0, 10)
    with pytest.raises(DataLost, match=f"{topic}-1: . offsets from . to 9 are gone"):
        rows_of(options_of(node, **QUICK), *spans)
    rows = rows_of(options_of(node, failOnDataLoss="false", **QUICK), *spans)
    assert [row["offset"] for row in rows if row["topic"] != topic] == list(range(10))
    there = 5 if how == "cut off" else 0
    assert [row["offset"] for row in rows if row["topic"] == topic] == list(range(there))
    assert told == [SpanReport("q-id", 7, topic, old, 1, 0, 9, there, 0, 9 - there, ((there, 9),))]


# What is told.


def test_the_first_task_tells_where_the_batch_begins(node: EmbeddedBroker, told: list[Any]) -> None:
    produce(node, "told", [b"x"] * 3)
    begin = PublishedStart({TopicPartition("told", 0): 0})
    rows_of(options_of(node), Span("told", "", 0, 0, 3), publish=begin)
    rows_of(options_of(node, queryName="mine"), Span("told", "", 0, 0, 3), publish=begin)
    rows_of(options_of(node), Span("told", "", 0, 0, 3))
    assert told == [("orders", begin.offsets), ("mine", begin.offsets)]


def test_a_description_of_a_job_begins_with_the_name_of_its_query() -> None:
    assert name_in("orders\nid = 1\nrunId = 2\nbatch = 3") == "orders"
    assert name_in("id = 1\nrunId = 2\nbatch = 3") == ""
    assert name_in("") == ""


# Typed rows.


def typed(node: EmbeddedBroker, **more: str) -> SourceOptions:
    return options_of(node, value__format="json", value__schema="id BIGINT", metadataColumns="_offset,_key", **more)


SCHEMA = StructType(
    [StructField("id", LongType()), StructField("_offset", LongType()), *schemas.metadata_fields(("_key",))]
)


def test_values_become_columns_with_metadata_beside_them(node: EmbeddedBroker) -> None:
    produce(node, "typed", [b'{"id": 1}', None, b'{"id": 3}'], key=b"k")
    assert rows_of(typed(node), Span("typed", "", 0, 0, 3), schema=SCHEMA) == [
        {"id": 1, "_offset": 0, "_key": b"k"},
        {"id": None, "_offset": 1, "_key": b"k"},
        {"id": 3, "_offset": 2, "_key": b"k"},
    ]


def test_undecodable_values_are_dead_letters_before_their_rows_are_given(node: EmbeddedBroker, told: list[Any]) -> None:
    produce(node, "bad", [b'{"id": 1}', b"{", b'{"id": 3}', b'{"id": "no"}'], key=b"k", headers=[("h", b"1")])
    options = typed(node, deadLetters="topic:letters")
    assert [row["_offset"] for row in rows_of(options, Span("bad", "", 0, 0, 4), schema=SCHEMA)] == [0, 2]
    assert told == [SpanReport("q-id", 7, "bad", "", 0, 0, 4, 2, 2, 0, ())]
    letters = rows_of(options_of(node, includeHeaders="true"), Span("letters", "", 0, 0, 2))
    assert sorted((row["value"], row["key"]) for row in letters) == [(b"{", b"k"), (b'{"id": "no"}', b"k")]
    headers = {header["key"]: header["value"] for header in letters[0]["headers"]}
    assert (headers["penstock.topic"], headers["penstock.offset"], headers["h"]) == (b"bad", b"1", b"1")
    assert len(rows_of(typed(node, deadLetters="drop"), Span("bad", "", 0, 0, 4), schema=SCHEMA)) == 2
    with pytest.raises(Undecodable, match="bad"):
        rows_of(typed(node), Span("bad", "", 0, 0, 4), schema=SCHEMA)


def test_a_worker_that_reads_loads_no_library_that_it_does_not_need() -> None:
    # Workers start often; pandas alone takes a third of a second, and pyarrow fetches it for some calls.
    script = (
        "import sys, penstock.spark.source.reading, penstock.spark.source.arrow_rows as made\n"
        "made.repeated('topic', 3), made.repeated(1, 3)\n"
        "print(sorted({'pandas', 'deltalake', 'pyiceberg', 'duckdb', 'fastavro'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=within(60)
    )
    assert told.stdout.strip() == "[]"
