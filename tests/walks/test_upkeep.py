"""Compaction and retention on a running broker, seen by a foreign client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing import EmbeddedBroker, broker
from tests.compat.processes import wait_for
from tests.patience import within

QUICK = {
    "log.cleaner.backoff.ms": "50",
    "log.retention.check.interval.ms": "50",
    "penstock.admin.listener": "",
}


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker(QUICK) as running:
        yield running


def create(node: EmbeddedBroker, name: str, **configs: str) -> None:
    spelled = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1, config=spelled)])[name].result(within(10))


def produce(node: EmbeddedBroker, topic: str, rows: list[tuple[bytes, bytes | None]]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap_servers, "linger.ms": 20, "log_level": 0})
    for key, value in rows:
        producer.produce(topic, value, key=key, partition=0)
        producer.poll(0)
    assert producer.flush(within(20)) == 0


def watermarks(node: EmbeddedBroker, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": node.bootstrap_servers, "group.id": "w", "log_level": 0})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=within(10))
        return found
    finally:
        consumer.close()


def read(node: EmbeddedBroker, topic: str) -> list[tuple[int, bytes, bytes | None]]:
    low, high = watermarks(node, topic)
    consumer = Consumer({
        "bootstrap.servers": node.bootstrap_servers, "group.id": "r", "enable.auto.commit": False, "log_level": 0,
        "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, low)])
    rows: list[tuple[int, bytes, bytes | None]] = []
    try:
        while True:
            record = consumer.poll(10)
            assert record is not None, f"nothing came although {topic} ends at {high}"
            if record.error():
                return rows
            rows.append((record.offset(), record.key(), record.value()))
    finally:
        consumer.close()


def test_a_compacted_topic_keeps_the_last_value_of_every_key_at_its_offset(node: EmbeddedBroker) -> None:
    create(node, "compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_bytes="1048576")
    rows = [(b"key %d" % (number % 50), b"%06d" % number + bytes(900)) for number in range(4_000)]
    produce(node, "compacted", rows)
    last = {key: (offset, key, value) for offset, (key, value) in enumerate(rows)}

    def cleaned() -> list[tuple[int, bytes, bytes | None]] | None:
        found = read(node, "compacted")
        return found if len(found) < 2_500 else None

    found = wait_for("compaction", cleaned, timeout_s=30)
    assert {row[1]: row for row in found} == last, "a reader ends up with the last value of every key"
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    assert all(rows[offset] == (key, value) for offset, key, value in found), "offsets are what they were"


def test_a_quiet_expired_topic_empties_itself(node: EmbeddedBroker) -> None:
    create(node, "quiet", retention_ms="1")
    produce(node, "quiet", [(b"k", b"v")] * 10)
    wait_for("the log to be empty", lambda: watermarks(node, "quiet") == (10, 10), timeout_s=20)
    produce(node, "quiet", [(b"k", b"v")])
    assert watermarks(node, "quiet")[1] == 11, "offsets go on"


def test_retention_by_size_deletes_the_oldest_segments(node: EmbeddedBroker) -> None:
    create(node, "sized", retention_bytes="2000000", segment_bytes="1048576", file_delete_delay_ms="0")
    produce(node, "sized", [(b"k", bytes(1_000))] * 8_000)
    wait_for("the log start to move", lambda: watermarks(node, "sized")[0], timeout_s=20)

    def first_is_the_log_start() -> bool:
        # It may move again in between: the check may have run while records were still coming.
        low = watermarks(node, "sized")[0]
        return 0 < low < 8_000 and read(node, "sized")[0][0] == low

    wait_for("the first record to be the log start", first_is_the_log_start, timeout_s=20)
