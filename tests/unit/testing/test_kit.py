"""What a test may do to its broker: move its clock, order faults, freeze it, go back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.model.errors import NOT_LEADER_OR_FOLLOWER
from penstock.protocol.codec import decode, encode
from penstock.protocol.registry import APIS
from penstock.server.reception.dispatch import SERVED
from penstock.testing import EmbeddedBroker, broker
from penstock.testing.refusals import refusal_of
from tests.patience import within
from tests.walks.every_api import Target, request_of

QUIET = {"log_level": 0}


def test_a_late_loop_is_no_news_to_a_program_that_configured_no_logging() -> None:
    program = """
import logging
import penstock.testing.node_thread
logging.getLogger("penstock.server.loop_watch").warning("late")
logging.basicConfig()
logging.getLogger("penstock.server.loop_watch").warning("late again")
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=within(60), check=True
    )
    assert said.stderr == "WARNING:penstock.server.loop_watch:late again\n"


@pytest.fixture
def running() -> Iterator[EmbeddedBroker]:
    with broker() as started:
        yield started


def producer_for(running: EmbeddedBroker, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": running.bootstrap_servers, **QUIET, **settings})


def put(running: EmbeddedBroker, topic: str, *values: bytes) -> None:
    producer = producer_for(running)
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(within(30)) == 0


def watermarks(running: EmbeddedBroker, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": running.bootstrap_servers, "group.id": "any", **QUIET})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=within(30))
        return found
    finally:
        consumer.close()


def topics_of(running: EmbeddedBroker) -> set[str]:
    names = (
        AdminClient({"bootstrap.servers": running.bootstrap_servers, **QUIET}).list_topics(timeout=within(30)).topics
    )
    return {name for name in names if not name.startswith("__")}


def test_a_week_passes_at_once_and_retention_has_run(running: EmbeddedBroker) -> None:
    put(running, "t", b"old", b"older")
    running.advance(days=6)
    assert watermarks(running, "t") == (0, 2)
    running.advance(days=2)
    assert watermarks(running, "t") == (2, 2)
    put(running, "t", b"new")
    assert watermarks(running, "t") == (2, 3)


def test_timestamps_are_of_the_time_that_was_moved_to(running: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, **QUIET})
    admin.create_topics([NewTopic("t", 1, config={"message.timestamp.type": "LogAppendTime"})])["t"].result(within(30))
    running.advance(hours=5)
    put(running, "t", b"x")
    consumer = Consumer({"bootstrap.servers": running.bootstrap_servers, "group.id": "any", **QUIET})
    consumer.assign([TopicPartition("t", 0, 0)])
    (record,) = consumer.consume(1, timeout=30)
    consumer.close()
    assert record.timestamp()[1] >= time.time() * 1000 + 4.9 * 3_600_000


def test_time_does_not_go_back(running: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="go back"):
        running.advance(ms=-1)


def test_a_broker_that_does_not_run_says_so(running: EmbeddedBroker) -> None:
    running.stop()
    with pytest.raises(RuntimeError, match="start"):
        running.advance(ms=1)


def test_an_ordered_error_happens_as_often_as_ordered(running: EmbeddedBroker) -> None:
    put(running, "t", b"first")
    running.fail(api="Produce", code="INVALID_RECORD", times=1)
    told: list[KafkaError | None] = []
    producer = producer_for(running)
    producer.produce("t", b"refused", partition=0, on_delivery=lambda error, _: told.append(error))
    producer.flush(within(30))
    (error,) = told
    assert error is not None
    assert error.code() == KafkaError.INVALID_RECORD
    assert running.faults_left("Produce") == 0
    put(running, "t", b"second")
    assert watermarks(running, "t") == (0, 2)


def test_a_retriable_error_is_retried_by_the_client(running: EmbeddedBroker) -> None:
    put(running, "t", b"first")
    running.fail(api="Produce", code=NOT_LEADER_OR_FOLLOWER, times=2)
    put(running, "t", b"second")
    assert running.faults_left("Produce") == 0
    assert watermarks(running, "t") == (0, 2)


def test_a_lost_reply_makes_no_duplicate_with_idempotence(running: EmbeddedBroker) -> None:
    put(running, "t", b"first")
    running.disconnect(api="Produce", served=True)
    producer = producer_for(running, **{"enable.idempotence": True})
    producer.produce("t", b"once", partition=0)
    assert producer.flush(within(30)) == 0
    assert running.faults_left("Produce") == 0
    assert watermarks(running, "t") == (0, 2)


def test_a_lost_reply_of_an_api_that_waits_has_had_its_effect(running: EmbeddedBroker) -> None:
    running.disconnect(api="CreateTopics", served=True)
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, **QUIET})
    with pytest.raises(KafkaException, match=r"TOPIC_ALREADY_EXISTS|TRANSPORT|timed out|_TIMED_OUT|Failed"):
        admin.create_topics([NewTopic("t", 1)], request_timeout=5)["t"].result(within(30))
    assert topics_of(running) == {"t"}


def test_faults_outlive_a_restart_and_can_be_taken_back(running: EmbeddedBroker) -> None:
    running.fail(api="Metadata", code=-1, times=1_000)
    running.restart()
    assert running.faults_left("metadata") == 1_000
    running.clear_faults()
    put(running, "t", b"x")


def test_what_cannot_be_ordered_is_said(running: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="did you mean Produce"):
        running.fail(api="Produc", code=1)
    with pytest.raises(ValueError, match="does not serve"):
        running.fail(api="ShareFetch", code=1)
    with pytest.raises(ValueError, match="no error"):
        running.fail(api="Produce", code="NO_SUCH_THING")
    with pytest.raises(ValueError, match="at least once"):
        running.fail(api="Produce", code=1, times=0)


@pytest.mark.parametrize("name", SERVED)
def test_every_api_can_be_refused_in_every_version(name: str) -> None:
    (api,) = (each for each in APIS.values() if each.name == name)
    for version in range(api.min, api.max + 1):
        request = request_of(api, version, Target("t", bytes(15) + b"t", "u"))
        asked, _ = decode(api.request(), version, encode(request, version))
        reply = refusal_of(api, asked, version, 7)
        told, _ = decode(api.response(), version, encode(reply, version))
        if name != "Metadata" or version >= 1:
            assert 7 in _error_codes(told), f"{name} v{version}"


def _error_codes(message: Any) -> Iterator[int]:
    for field in getattr(message, "__slots__", ()):
        value = getattr(message, field)
        if field in ("error_code", "partition_error_code"):
            yield value
        for each in value if isinstance(value, list) else (value,):
            yield from _error_codes(each)


def test_a_frozen_broker_answers_when_it_thaws(running: EmbeddedBroker) -> None:
    put(running, "t", b"first")
    producer = producer_for(running)
    with running.paused():
        producer.produce("t", b"late", partition=0)
        assert producer.flush(0.3) == 1
    assert producer.flush(within(30)) == 0


def test_a_frozen_broker_can_be_stopped(running: EmbeddedBroker) -> None:
    running.pause()
    running.pause()
    running.stop()
    assert not running.running


def test_going_back_brings_data_and_time_back(running: EmbeddedBroker) -> None:
    put(running, "t", b"kept")
    snapshot = running.snapshot()
    put(running, "t", b"forgotten")
    put(running, "u", b"forgotten")
    running.advance(days=8)
    for _ in range(2):
        running.restore(snapshot)
        assert watermarks(running, "t") == (0, 1)
        assert topics_of(running) == {"t"}
        assert running.clock.ahead_ms == 0
        put(running, "t", b"anew")


def test_a_snapshot_cuts_no_connection(running: EmbeddedBroker) -> None:
    producer = producer_for(running)
    producer.produce("t", b"one", partition=0)
    assert producer.flush(within(30)) == 0
    stop = threading.Event()

    def snap() -> None:
        while not stop.is_set():
            running.snapshot()

    thread = threading.Thread(target=snap)
    thread.start()
    try:
        for number in range(200):
            producer.produce("t", b"%d" % number, partition=0)
        assert producer.flush(within(30)) == 0
    finally:
        stop.set()
        thread.join()
    assert watermarks(running, "t") == (0, 201)
