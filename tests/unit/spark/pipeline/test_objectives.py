"""What is promised of sinks is read from the file with its mistakes, and judged by the oldest record that waits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.pipeline.checking import check
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.freshness import as_fresh, places_of
from penstock.spark.pipeline.home import UNKNOWN_MS, SinkProgress
from penstock.spark.pipeline.lag import Log
from penstock.spark.pipeline.listing import Listed
from penstock.spark.pipeline.objectives import judge, seconds_of
from penstock.spark.pipeline.reading import examine
from penstock.spark.progress.records import PartitionProgress

FILE = """
name = "shop"
{top}
[sources.orders]
topic = "orders"
[sinks.lake]
from = "orders"
table = "orders"
{sink}
[sinks.other]
from = "orders"
table = "other"
"""
SINK = SinkProgress("lake", "table", "orders", "running", "shop-lake", batch_id=3, lag=2)


def flow_of(top: str = "", sink: str = "") -> tuple[Flow | None, list[str]]:
    found = examine(FILE.format(top=top, sink=sink), Path("/shop.toml"))
    return found.flow, [each.at("shop.toml") for each in found.mistakes]


def test_a_file_may_promise_something_of_a_sink_and_have_a_port() -> None:
    flow, mistakes = flow_of('admin = "127.0.0.1:9646"', 'fresh_within = "1 minute 30 seconds"')
    assert (mistakes, flow is not None) == ([], True)
    assert flow is not None
    assert ([sink.fresh_within_s for sink in flow.sinks], flow.admin) == ([90.0, 0.0], "127.0.0.1:9646")
    off, _ = flow_of('admin = "off"')
    assert off is not None
    assert off.admin is None


def test_mistakes_in_it_name_their_line() -> None:
    _, mistakes = flow_of('admin = "here"', 'fresh_within = "soon"')
    assert len(mistakes) == 2
    assert mistakes[0].startswith("shop.toml:3:")
    assert 'no address: write "127.0.0.1:9646"' in mistakes[0]
    assert mistakes[1].startswith("shop.toml:9:")
    assert "fresh_within = 'soon' is no time" in mistakes[1]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("30 seconds", 30), ("1 HOUR 5 minutes", 3_900), ("250 milliseconds", 0.25), ("2 days", 172_800),
     ("", None), ("0 seconds", None), ("5", None), ("5 months", None), ("second 5", None)],
)  # fmt: skip
def test_times_are_spelled_as_triggers_are(words: str, seconds: float | None) -> None:
    assert seconds_of(words) == seconds


def test_a_promise_is_kept_while_the_oldest_record_is_young_enough() -> None:
    waiting = replace(SINK, waiting_since_ms=10_000)
    assert judge(waiting, 5.0, 15_000).met
    missed = judge(waiting, 5.0, 15_001)
    assert (missed.met, missed.words) == (False, "2 records wait for it, the oldest for 5.0 s, and 5.0 s is promised")
    assert judge(waiting, 0.0, 10**9).met
    assert judge(replace(SINK, lag=0, waiting_since_ms=0, state="stopped"), 5.0, 10**9).words == (
        "nothing waits for it, and it is stopped"
    )


@pytest.mark.parametrize("state", ["running", "waiting", "failed"])
def test_who_does_not_know_how_fresh_it_is_keeps_no_promise(state: str) -> None:
    unknown = replace(SINK, state=state, waiting_since_ms=UNKNOWN_MS)
    assert not judge(unknown, 5.0, 0).met
    assert judge(unknown, 0.0, 0).met


def test_a_sink_that_nobody_has_heard_of_keeps_no_promise() -> None:
    flow, _ = flow_of(sink='fresh_within = "5 seconds"')
    assert flow is not None
    lake, other = check(flow, [])
    assert (lake.met, other.met) == (False, True)
    fresh = replace(SINK, lag=0, waiting_since_ms=0)
    listed = Listed("shop", "stopped", True, "h", 1, 1, "local", "f", "b", 0, "", (fresh,))
    assert check(flow, [listed])[0].met
    assert not check(flow, [replace(listed, name="another")])[0].met


partitions = st.builds(
    PartitionProgress, st.sampled_from(["a", "b"]), st.integers(0, 5), st.integers(0, 50), st.integers(-1, 50)
)


@given(st.lists(partitions, max_size=6, unique_by=lambda each: (each.topic, each.partition)), st.data())
def test_freshness_is_that_of_the_oldest_of_all_partitions_with_lag(
    places: list[PartitionProgress], data: st.DataObject
) -> None:
    sink = replace(SINK, partitions=tuple(places), lag=sum(each.lag for each in places))
    lagging = [each for each in places if each.lag]
    assert {(place.log, place.offset) for place in places_of([sink])} == {
        (Log.of(each), each.offset) for each in lagging
    }
    written = {(Log.of(each), each.offset): data.draw(st.integers(0, 1_000)) for each in lagging}
    told = {at: ms for at, ms in written.items() if data.draw(st.booleans())}
    since_ms = as_fresh(sink, told).waiting_since_ms
    if told != written:
        assert since_ms == UNKNOWN_MS
    else:
        assert since_ms == min((ms for ms in written.values() if ms), default=0)
