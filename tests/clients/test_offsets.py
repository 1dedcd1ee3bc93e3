"""Finding a place in a partition: by offset, by time, at both ends, and after records were deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.interface import OFFSET_OUT_OF_RANGE, Client, ProducerSettings, Sent, refused

NewTopic = Callable[..., str]

ROUND_MS = 1_700_000_000_000


@pytest.fixture
def topic(client: Client, new_topic: NewTopic) -> str:
    """A hundred records, one each second."""
    name = new_topic()
    with client.producer(ProducerSettings()) as producer:
        producer.send(name, [Sent(b"%d" % number, timestamp_ms=ROUND_MS + number * 1_000) for number in range(100)])
    return name


def test_reading_starts_at_any_offset(client: Client, topic: str) -> None:
    assert [record.offset for record in client.fetch(topic, 60, offset=40)] == list(range(40, 100))
    assert [record.value for record in client.fetch(topic, 1, offset=99)] == [b"99"]


def test_a_time_finds_the_first_record_at_or_after_it(client: Client, topic: str) -> None:
    times = {0: 0, ROUND_MS: 0, ROUND_MS + 1: 1, ROUND_MS + 50_000: 50, ROUND_MS + 98_500: 99, ROUND_MS + 99_001: None}
    assert {at: client.offset_for_time(topic, at) for at in times} == times


def test_watermarks_are_the_start_and_the_end(client: Client, topic: str, new_topic: NewTopic) -> None:
    assert client.watermarks(topic) == (0, 100)
    assert client.watermarks(new_topic()) == (0, 0)


def test_deleted_records_are_gone_and_offsets_stay(client: Client, topic: str) -> None:
    assert client.delete_records(topic, before=30) == 30
    assert client.watermarks(topic) == (30, 100)
    assert [record.offset for record in client.fetch(topic, 70, offset=30)] == list(range(30, 100))
    assert client.offset_for_time(topic, ROUND_MS) == 30
    # -1 stands for everything up to the high watermark.
    assert client.delete_records(topic, before=-1) == 100
    assert client.watermarks(topic) == (100, 100)
    with refused(OFFSET_OUT_OF_RANGE):
        client.delete_records(topic, before=101)
    with client.producer(ProducerSettings()) as producer:
        assert producer.send(topic, [Sent(b"next")]) == [100]
