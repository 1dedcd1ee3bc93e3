"""Which pipelines there are, and what is wanted of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.spark.progress.records import PipelineRecord, ProgressRecord
from penstock.spark.progress.status import RUN, STOP, ask, follow_control, merge, statuses, tell
from penstock.spark.progress.topic import Entry
from penstock.testing import EmbeddedBroker, broker

SHOP = PipelineRecord("shop", "running", "host", 7, started_ms=1_000, at_ms=2_000, heartbeat_ms=1_000)
QUERY = ProgressRecord("shop", "orders", "q", "r", 3, 2_000, processed_rows_per_s=5.0)


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        yield found


def entry(record: PipelineRecord | ProgressRecord, at_ms: int) -> Entry:
    return Entry(record.key, record.to_json(), 0, at_ms)


def test_a_pipeline_is_its_last_word_with_its_queries() -> None:
    (status,) = merge(
        [
            entry(replace(SHOP, state="stopped"), 1_000),
            entry(replace(QUERY, batch_id=2), 1_500),
            entry(SHOP, 2_000),
            entry(QUERY, 2_000),
            entry(replace(QUERY, owner="elsewhere"), 2_000),
            Entry("control/shop", {"want": "stop"}, 0, 2_000),
        ],
        now_ms=3_000,
    )
    assert (status.name, status.state, status.heard_ms, status.wanted) == ("shop", "running", 2_000, "stop")
    assert status.queries == (QUERY,)
    assert status.rows_per_s == 5.0


def test_a_pipeline_that_misses_heartbeats_is_silent() -> None:
    assert [merge([entry(SHOP, 2_000)], now)[0].state for now in (5_000, 5_001)] == ["running", "silent"]


def test_a_pipeline_that_ended_is_not_silent() -> None:
    ended = [entry(replace(SHOP, state="failed", error="no"), 2_000)]
    assert (merge(ended, 90_000)[0].state, merge(ended, 90_000)[0].error) == ("failed", "no")


def test_what_is_no_record_is_passed_over() -> None:
    strange = [Entry("pipeline/x", {"name": "x"}), Entry("pipeline/y", None), Entry("other", {}), entry(SHOP, 2_000)]
    assert [status.name for status in merge(strange, 2_000)] == ["shop"]


def test_what_one_machine_tells_another_reads(running: EmbeddedBroker) -> None:
    assert statuses(running.bootstrap_servers) == []
    assert tell(running.bootstrap_servers, SHOP)
    assert tell(running.bootstrap_servers, QUERY)
    (status,) = statuses(running.bootstrap_servers)
    assert (status.name, status.state, status.queries) == ("shop", "running", (QUERY,))


def test_a_runner_hears_what_is_wanted_after_it_began(running: EmbeddedBroker) -> None:
    ask(running.bootstrap_servers, "shop", STOP)
    follower = follow_control(running.bootstrap_servers, "shop")
    assert follower.check() is None
    ask(running.bootstrap_servers, "shopping", STOP)
    assert follower.check() is None
    ask(running.bootstrap_servers, "shop", STOP)
    assert follower.check() == STOP
    ask(running.bootstrap_servers, "shop", STOP)
    ask(running.bootstrap_servers, "shop", RUN)
    assert follower.check() == RUN
    assert follower.check() is None


def test_a_wish_that_nobody_knows_is_refused(running: EmbeddedBroker) -> None:
    with pytest.raises(ValueError, match="'stop' or 'run'"):
        ask(running.bootstrap_servers, "shop", "jump")


def test_a_state_that_nobody_hears_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert not tell("127.0.0.1:1", SHOP)
    assert not tell("127.0.0.1:1", SHOP)
    assert follow_control("127.0.0.1:1", "shop").check() is None
    assert len([record for record in caplog.records if "could not be told" in record.message]) == 1
