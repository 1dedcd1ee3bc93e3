"""Records go in and come out the same, whatever the client, the codec and the settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.clients.interface import (
    CREATE_TIME,
    INVALID_RECORD,
    LOG_APPEND_TIME,
    MESSAGE_TOO_LARGE,
    UNKNOWN,
    Client,
    ProducerSettings,
    Seen,
    Sent,
    refused,
)
from tests.compat.wire import CODECS, stored_batches

NewTopic = Callable[..., str]

ROUND_MS = 1_700_000_000_000


def content(seen: list[Seen]) -> list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]]:
    return [(record.key, record.value, record.headers) for record in seen]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_stored_as_sent_and_read_back(
    client: Client, settings: ProducerSettings, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic()
    sent = [Sent(b"value %d " % number * 20, key=b"key-%d" % (number % 7)) for number in range(200)]
    with client.producer(replace(settings, codec=codec)) as producer:
        assert producer.send(topic, sent) == list(range(200))
    assert content(client.fetch(topic, 200)) == [(record.key, record.value, ()) for record in sent]
    batches = stored_batches(client.bootstrap, topic)
    assert {batch.codec for batch in batches} == {codec}
    assert sum(batch.record_count for batch in batches) == 200
    if settings.idempotent:
        assert all(batch.producer_id >= 0 and batch.base_sequence >= 0 for batch in batches)


def test_keys_values_and_headers_may_be_empty_or_missing(
    client: Client, settings: ProducerSettings, new_topic: NewTopic
) -> None:
    topic = new_topic()
    sent = [
        Sent(b"value"),
        Sent(b"", key=b""),
        Sent(None, key=b"tombstone"),
        Sent(b"value", key=b"key", headers=[("one", b"1"), ("two", b""), ("one", b"again")]),
        Sent("größe €".encode(), key="ключ".encode(), headers=[("naïve", "日本".encode())]),
    ]
    with client.producer(settings) as producer:
        producer.send(topic, sent)
    assert content(client.fetch(topic, 5)) == [(record.key, record.value, tuple(record.headers)) for record in sent]


def test_a_tombstone_and_a_key_are_needed_and_kept_on_a_compacted_topic(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(**{"cleanup.policy": "compact"})
    with client.producer(ProducerSettings()) as producer:
        producer.send(topic, [Sent(b"value", key=b"key"), Sent(None, key=b"key")])
        with refused(INVALID_RECORD, UNKNOWN):
            producer.send(topic, [Sent(b"value without a key")])
    assert [(seen.key, seen.value) for seen in client.fetch(topic, 2)] == [(b"key", b"value"), (b"key", None)]


def test_create_time_is_what_the_producer_said(client: Client, settings: ProducerSettings, new_topic: NewTopic) -> None:
    topic = new_topic()
    with client.producer(settings) as producer:
        producer.send(topic, [Sent(b"value", timestamp_ms=ROUND_MS + number) for number in (5, 3, 9)])
    seen = client.fetch(topic, 3)
    assert [(record.timestamp_ms - ROUND_MS, record.timestamp_type) for record in seen] == [
        (5, CREATE_TIME),
        (3, CREATE_TIME),
        (9, CREATE_TIME),
    ]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_log_append_time_is_the_brokers(
    client: Client, settings: ProducerSettings, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    with client.producer(replace(settings, codec=codec)) as producer:
        producer.send(topic, [Sent(b"value", timestamp_ms=ROUND_MS)] * 3)
    after_ms = int(time.time() * 1000)
    seen = client.fetch(topic, 3)
    assert all(before_ms <= record.timestamp_ms <= after_ms for record in seen)
    assert {record.timestamp_type for record in seen} == {LOG_APPEND_TIME}
    assert all(batch.log_append_time for batch in stored_batches(client.bootstrap, topic))


def test_five_megabytes_pass_where_the_limits_allow_it(
    client: Client, settings: ProducerSettings, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"max.message.bytes": "6000000"})
    value = bytes(range(256)) * 20_480
    with client.producer(replace(settings, request_bytes_max=6_000_000)) as producer:
        producer.send(topic, [Sent(value), Sent(b"small")])
    seen = client.fetch(topic, 2, fetch_bytes_max=6_000_000)
    assert [record.value for record in seen] == [value, b"small"]
    # A batch larger than the consumer's limit still comes, or it could never get past it.
    assert client.fetch(topic, 2)[1].value == b"small"


def test_a_message_over_the_topics_limit_is_refused(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(**{"max.message.bytes": "1000"})
    with client.producer(ProducerSettings()) as producer, refused(MESSAGE_TOO_LARGE):
        producer.send(topic, [Sent(b"x" * 2_000)])
    # The refusal ends an idempotent producer of kafka-python, so another one shows that nothing was written.
    with client.producer(ProducerSettings()) as producer:
        assert producer.send(topic, [Sent(b"fits")]) == [0]


def test_partitions_have_offsets_of_their_own(client: Client, settings: ProducerSettings, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    sent = [Sent(b"%d" % number, partition=number % 3) for number in range(30)]
    with client.producer(settings) as producer:
        assert producer.send(topic, sent) == [number // 3 for number in range(30)]
    for partition in range(3):
        seen = client.fetch(topic, 10, partition=partition)
        assert [int(record.value or b"") for record in seen] == list(range(partition, 30, 3))
        assert client.watermarks(topic, partition) == (0, 10)


def test_a_topic_appears_with_its_first_record(client: Client, settings: ProducerSettings, new_topic: NewTopic) -> None:
    topic = new_topic() + "-made-by-producing"
    with client.producer(settings) as producer:
        assert producer.send(topic, [Sent(b"first")]) == [0]
    assert [record.value for record in client.fetch(topic, 1)] == [b"first"]
