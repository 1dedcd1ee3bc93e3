"""Reports of tasks, and how the commit of their batch finds them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.blocking import Admin
from penstock.spark.naming import INTERNAL_TOPIC
from penstock.spark.progress.reports import SpanReport, collect, publish
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within

REPORT = SpanReport("q", 4, "orders", "id", 1, 10, 20, rows=6, dead=1, missing=3, gaps=((11, 13), (15, 16)))


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        yield found


def settings(running: EmbeddedBroker) -> dict[str, str]:
    # Workers have a consumer's settings: what only consumers know must not disturb.
    return {"bootstrap_servers": running.bootstrap_servers, "isolation_level": "read_committed"}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_commit_finds_every_report_of_its_batch_and_no_other(running: EmbeddedBroker) -> None:
    since = now_ms()
    assert collect(running.bootstrap_servers, "q", 4, since) == []
    assert publish(settings(running), [REPORT, replace(REPORT, start=20, end=25)])
    assert publish(settings(running), [replace(REPORT, partition=0), replace(REPORT, batch_id=41)])
    assert publish(settings(running), [replace(REPORT, query_id="other")])
    assert collect(running.bootstrap_servers, "q", 4, since) == [
        replace(REPORT, partition=0),
        REPORT,
        replace(REPORT, start=20, end=25),
    ]


def test_a_span_that_was_read_again_counts_once(running: EmbeddedBroker) -> None:
    first, again = replace(REPORT, query_id="twice", rows=5, missing=4), replace(REPORT, query_id="twice")
    assert publish(settings(running), [first])
    assert publish(settings(running), [again])
    assert collect(running.bootstrap_servers, "twice", 4, now_ms()) == [again]


def test_a_commit_logs_in_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # Spark tells a sink nothing of the source's options, the password among them.
    since = now_ms()
    with broker(secure=True) as secured:
        assert publish(secured.client_settings, [REPORT])
        monkeypatch.setenv("PENSTOCK_CLIENT_CONFIG", str(secured.client_files.java))
        assert collect(secured.bootstrap_servers, "q", 4, since) == [REPORT]


def test_the_topic_is_small_and_forgets(running: EmbeddedBroker) -> None:
    publish(settings(running), [REPORT])
    with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        topic = admin.describe_topic(INTERNAL_TOPIC)
    assert len(topic.partitions) == 1
    assert topic.configs["cleanup.policy"] == "compact,delete"
    assert topic.configs["retention.ms"] == str(7 * 24 * 3_600_000)


def test_nobody_to_tell_is_one_warning_and_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = {"bootstrap_servers": "127.0.0.1:1"}
    begun = time.monotonic()
    assert not publish(nowhere, [REPORT])
    assert not publish(nowhere, [REPORT])
    assert collect("127.0.0.1:1", "q", 4, 0) == []
    assert time.monotonic() - begun < within(8)
    told = [record.message for record in caplog.records if "could not be told to its sink" in record.message]
    assert len(told) == 1
    assert "penstock lake audit" in told[0]
