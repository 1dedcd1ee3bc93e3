"""Records through Kafka's tools: console producer and consumer, the perf test, offsets, deletion of records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.compat.apache.tools import Outcome, Tools
from tests.compat.batches import Record, encode_batch
from tests.compat.wire import CODECS, connect, produce, stored_batches

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

START_MS = 1_700_000_000_000


def create(tools: Tools, topic: str, partitions: int = 1, *configs: str) -> None:
    words = [word for config in configs for word in ("--config", config)]
    tools.run("kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions), *words)


def consume(tools: Tools, topic: str, partition: int, count: int, *arguments: str, offset: str = "earliest") -> Outcome:
    """Reads exactly `count` records of one partition; one that never comes ends the consumer after 20 s."""
    place = ("--topic", topic, "--partition", str(partition), "--offset", offset)
    limits = ("--max-messages", str(count), "--timeout-ms", "20000")
    read = tools.run("kafka-console-consumer", *place, *limits, *arguments)
    assert f"Processed a total of {count} messages" in read.stderr
    return read


PRINT_ALL = [
    word
    for part in ("partition", "offset", "headers", "key")
    for word in ("--formatter-property", f"print.{part}=true")
]


@pytest.mark.parametrize("codec", CODECS)
def test_the_console_writes_and_reads_a_partition(tools: Tools, bootstrap: str, topic: str, codec: str) -> None:
    create(tools, topic)
    lines = "h1:v1,h2:v2\tk1\tone\nh:x\tk2\ttwo\nh:y\tNULL\tNULL\n"
    readers = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    options = [word for reader in readers for word in ("--reader-property", reader)]
    tools.run("kafka-console-producer", "--topic", topic, "--compression-codec", codec, *options, stdin=lines)
    assert consume(tools, topic, 0, 3, *PRINT_ALL).lines() == [
        "Partition:0\tOffset:0\th1:v1,h2:v2\tk1\tone",
        "Partition:0\tOffset:1\th:x\tk2\ttwo",
        "Partition:0\tOffset:2\th:y\tnull\tnull",
    ]
    assert consume(tools, topic, 0, 1, offset="1").lines() == ["two"]
    assert {batch.codec for batch in stored_batches(bootstrap, topic)} == {codec}


def test_a_topic_is_made_by_the_first_record(tools: Tools, topic: str) -> None:
    tools.run("kafka-console-producer", "--topic", topic, stdin="first\n")
    assert consume(tools, topic, 0, 1).lines() == ["first"]


def perf(tools: Tools, topic: str, count: int, size: int, *properties: str) -> None:
    words = ("--command-property", *properties) if properties else ()
    load = ("--num-records", str(count), "--record-size", str(size), "--throughput", "-1")
    summary = tools.run("kafka-producer-perf-test", "--topic", topic, *load, *words).lines()[-1]
    assert summary.startswith(f"{count} records sent, ")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "properties",
    [("acks=1", "enable.idempotence=false"), ("acks=all", "enable.idempotence=false"), ("enable.idempotence=true",)],
    ids=["acks-1", "acks-all", "idempotent"],
)
def test_the_perf_tools_records_all_arrive(
    tools: Tools, bootstrap: str, topic: str, codec: str, properties: tuple[str, ...]
) -> None:
    create(tools, topic, 2)
    perf(tools, topic, 2_000, 100, f"compression.type={codec}", *properties)
    batches = [batch for partition in (0, 1) for batch in stored_batches(bootstrap, topic, partition)]
    assert sum(batch.record_count for batch in batches) == 2_000
    assert {batch.codec for batch in batches} == {codec}
    idempotent = "enable.idempotence=true" in properties
    assert all((batch.producer_id >= 0) == (batch.base_sequence >= 0) == idempotent for batch in batches)


def test_a_consumer_by_assignment_reads_everything_the_perf_tool_wrote(tools: Tools, topic: str) -> None:
    create(tools, topic)
    perf(tools, topic, 5_000, 100, "compression.type=lz4")
    read = consume(tools, topic, 0, 5_000).lines()
    assert len(read) == 5_000
    assert all(re.fullmatch("[A-Z]{100}", line) for line in read)


def offsets(tools: Tools, topic: str, time: str) -> list[str]:
    return tools.run("kafka-get-offsets", "--topic", topic, "--time", time).lines()


def test_offsets_are_found_by_name_and_by_time(tools: Tools, bootstrap: str, topic: str) -> None:
    create(tools, topic, 2)
    with connect(bootstrap) as connection:
        # Three batches of ten records, one each 100 ms; the largest timestamp is inside the second batch.
        for delay_ms, codec in ((0, "none"), (5_000, "zstd"), (3_000, "gzip")):
            records = [Record(b"%d" % at, timestamp_delta_ms=at * 100) for at in range(10)]
            batch = encode_batch(records, base_timestamp_ms=START_MS + delay_ms, codec=codec)
            produce(connection, topic, 0, batch)
    assert offsets(tools, topic, "earliest") == offsets(tools, topic, "-2") == [f"{topic}:0:0", f"{topic}:1:0"]
    assert offsets(tools, topic, "latest") == offsets(tools, topic, "-1") == [f"{topic}:0:30", f"{topic}:1:0"]
    # A partition without an answer is not printed.
    assert offsets(tools, topic, "max-timestamp") == [f"{topic}:0:19"]
    assert offsets(tools, topic, "earliest-local") == [f"{topic}:0:0", f"{topic}:1:0"]
    assert offsets(tools, topic, "latest-tiered") == []
    assert offsets(tools, topic, str(START_MS + 250)) == [f"{topic}:0:3"]
    assert offsets(tools, topic, str(START_MS + 901)) == [f"{topic}:0:10"]
    assert offsets(tools, topic, str(START_MS + 5_450)) == [f"{topic}:0:15"]
    assert offsets(tools, topic, str(START_MS + 5_901)) == []


def delete_records(tools: Tools, scratch: Path, topic: str, before: int) -> list[str]:
    wanted = scratch / "offsets.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": before}]}))
    return tools.run("kafka-delete-records", "--offset-json-file", wanted).lines()[2:]


def test_deleted_records_move_the_start_of_the_log(tools: Tools, tmp_path: Path, topic: str) -> None:
    create(tools, topic)
    perf(tools, topic, 1_000, 100)
    assert delete_records(tools, tmp_path, topic, 100) == [f"partition: {topic}-0\tlow_watermark: 100"]
    assert offsets(tools, topic, "earliest") == [f"{topic}:0:100"]
    assert len(consume(tools, topic, 0, 900).lines()) == 900
    assert delete_records(tools, tmp_path, topic, 50) == [f"partition: {topic}-0\tlow_watermark: 100"]
    assert delete_records(tools, tmp_path, topic, -1) == [f"partition: {topic}-0\tlow_watermark: 1000"]
    assert offsets(tools, topic, "earliest") == offsets(tools, topic, "latest") == [f"{topic}:0:1000"]
    (refused,) = delete_records(tools, tmp_path, topic, 1_001)
    assert f"partition: {topic}-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException" in refused


def test_records_of_a_compacted_topic_are_not_deleted(tools: Tools, tmp_path: Path, topic: str) -> None:
    create(tools, topic, 1, "cleanup.policy=compact")
    (refused,) = delete_records(tools, tmp_path, topic, 0)
    assert f"partition: {topic}-0\terror: org.apache.kafka.common.errors.PolicyViolationException" in refused
