"""How old the records are that wait is asked of the brokers: by their own timestamps, each place once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.blocking import Producer
from penstock.spark.pipeline import home
from penstock.spark.pipeline.freshness import Clockwork, as_fresh, ask_times, places_of
from penstock.spark.pipeline.home import SinkProgress
from penstock.spark.pipeline.lag import Log
from penstock.spark.pipeline.listing import Listed, with_lag_of_now
from penstock.spark.progress.records import PartitionProgress
from penstock.testing import EmbeddedBroker, broker

SINK = SinkProgress("lake", "table", "t", "running", "q", batch_id=3)


def standing(topic: str, offset: int, end: int, committed: bool = False) -> SinkProgress:
    return replace(SINK, partitions=(PartitionProgress(topic, 0, offset, end, committed),))


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        with Producer(bootstrap_servers=found.bootstrap_servers) as producer:
            for number in range(10):
                producer.send("a", b"v" * 100, partition=0, timestamp=1_000 + number)
            producer.flush()
        yield found


def test_the_record_that_waits_says_since_when(node: EmbeddedBroker) -> None:
    settings = {"bootstrap_servers": node.bootstrap_servers}
    for offset in (0, 3, 9):
        sink = standing("a", offset, 10)
        assert as_fresh(sink, ask_times(settings, places_of([sink]))).waiting_since_ms == 1_000 + offset
    assert as_fresh(standing("a", 10, 10), {}).waiting_since_ms == 0


def test_markers_and_what_was_aborted_wait_for_nobody_who_reads_committed_records(node: EmbeddedBroker) -> None:
    settings = {"bootstrap_servers": node.bootstrap_servers}
    with Producer(bootstrap_servers=node.bootstrap_servers, transactional_id="t") as producer:
        producer.begin()
        producer.send("b", b"never", partition=0, timestamp=5).result()
        producer.abort()
    aborted = standing("b", 0, 2, committed=True)
    assert as_fresh(aborted, ask_times(settings, places_of([aborted]))).waiting_since_ms == 0
    everything = standing("b", 0, 2)
    assert as_fresh(everything, ask_times(settings, places_of([everything]))).waiting_since_ms == 5


def test_a_topic_that_is_gone_leaves_others_alone(node: EmbeddedBroker) -> None:
    settings = {"bootstrap_servers": node.bootstrap_servers, "default_api_timeout_ms": "1000"}
    sinks = [standing("gone", 0, 5), standing("a", 2, 10)]
    times = ask_times(settings, places_of(sinks), 5.0)
    assert [as_fresh(sink, times).waiting_since_ms for sink in sinks] == [-1, 1_002]


def test_who_does_not_move_is_not_asked_again(node: EmbeddedBroker) -> None:
    clockwork, sink = Clockwork(), standing("a", 4, 10)
    clockwork.look({"bootstrap_servers": node.bootstrap_servers}, [sink])
    nobody = {"bootstrap_servers": "127.0.0.1:1"}
    assert clockwork.look(nobody, [sink], 0.1) == {(Log.of(sink.partitions[0]), 4): 1_004}
    assert clockwork.look(nobody, [replace(sink, partitions=())], 0.1) == {}


def test_a_list_of_pipelines_says_how_fresh_they_are(node: EmbeddedBroker) -> None:
    # The last batch saw the end of the log; since then ten records have come.
    sink = standing("a", 0, 0)
    listed = Listed("shop", home.STOPPED, True, "me", 1, 1, "l", "/p", node.bootstrap_servers, 0, "", (sink,))
    ((found,),) = [each.sinks for each in with_lag_of_now([listed], lambda _bootstrap: {})]
    assert (found.lag, found.waiting_since_ms, found.fresh_s(3_000)) == (10, 1_000, 2.0)
