"""How far sinks are behind is told by the logs as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.blocking import Admin, Producer
from penstock.model.ids import TopicPartition
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Progress, SinkProgress
from penstock.spark.pipeline.lag import Log, as_of, of_all
from penstock.spark.pipeline.listing import Listed, with_lag_of_now
from penstock.spark.progress.records import PartitionProgress
from penstock.testing import EmbeddedBroker, broker

A0, A1 = Log(TopicPartition("a", 0), False), Log(TopicPartition("a", 1), False)
SINK = SinkProgress(
    "lake",
    "table",
    "t",
    "running",
    "q",
    batch_id=3,
    lag=2,
    partitions=(PartitionProgress("a", 0, 5, 7), PartitionProgress("a", 1, 4, 4)),
)


def test_lag_is_what_came_since_the_last_batch_too() -> None:
    now = as_of(SINK, {A0: 9, A1: 10})
    assert now.lag == (9 - 5) + (10 - 4)
    assert now.partitions == (PartitionProgress("a", 0, 5, 9), PartitionProgress("a", 1, 4, 10))


def test_what_nobody_told_stays_as_it_was_last_known() -> None:
    assert as_of(SINK, {}) == SINK
    assert as_of(SINK, {A1: 6}).lag == 2 + 2
    assert as_of(SINK, {A0: 6}).lag == 2, "an answer that is older than the batch"
    without = replace(SINK, partitions=(), lag=3)
    assert as_of(without, {A0: 9}) == without


def test_a_pipeline_that_does_not_know_where_a_sink_is_does_not_say_that_nothing_waits() -> None:
    failed_early = SinkProgress("bad", "table", "t", "failed", "q")
    assert of_all(()) is None
    assert of_all((failed_early,)) is None
    assert of_all((SINK, failed_early)) is None
    assert of_all((SINK,)) == 2


def test_records_that_several_sinks_wait_for_are_counted_once() -> None:
    slower = replace(SINK, sink="out", partitions=(PartitionProgress("a", 0, 4, 7), PartitionProgress("b", 0, 1, 5)))
    assert of_all((SINK, slower)) == 3 + 4
    assert of_all((slower, SINK)) == 3 + 4


def test_positions_survive_their_file() -> None:
    progress = Progress(1, home.RUNNING, (SINK,))
    from dataclasses import asdict

    assert Progress.of_json(asdict(progress)) == progress


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        with Admin(bootstrap_servers=found.bootstrap_servers) as admin:
            admin.create_topic("a", 1)
        with Producer(bootstrap_servers=found.bootstrap_servers) as producer:
            for _ in range(12):
                producer.send("a", b"v")
            producer.flush()
        yield found


def test_brokers_are_asked_and_those_that_are_away_are_named(running: EmbeddedBroker) -> None:
    here = Listed("shop", home.FAILED, True, "me", 1, 1, "local", "/p", running.bootstrap_servers, 0, "", (SINK,))
    away = replace(here, name="away", bootstrap="127.0.0.1:1")
    idle = replace(here, name="idle", sinks=())
    silent: list[str] = []
    found = with_lag_of_now([here, away, idle], lambda _bootstrap: {}, silent.append)
    assert [(each.name, each.lag) for each in found] == [("shop", 12 - 5), ("away", 2), ("idle", None)]
    assert silent == ["127.0.0.1:1"]


def test_who_reads_committed_records_does_not_wait_for_open_transactions(running: EmbeddedBroker) -> None:
    committed = replace(SINK, partitions=(PartitionProgress("open", 0, 1, 1, committed=True),))
    everything = replace(SINK, partitions=(PartitionProgress("open", 0, 1, 1),))
    both = Listed(
        "both", home.RUNNING, True, "me", 1, 1, "local", "/p", running.bootstrap_servers, 0, "", (committed, everything)
    )
    with Producer(bootstrap_servers=running.bootstrap_servers, transactional_id="lag") as producer:
        producer.begin()
        for _ in range(4):
            producer.send("open", b"v", partition=0)
        producer.flush()
        (found,) = with_lag_of_now([both], lambda _bootstrap: {})
        assert [sink.lag for sink in found.sinks] == [0, 3]
        producer.commit()
    (found,) = with_lag_of_now([both], lambda _bootstrap: {})
    assert [sink.lag for sink in found.sinks] == [4, 4], "the marker has an offset too"
