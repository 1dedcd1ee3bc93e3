from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.lags import (
    LOOKS_KEPT,
    UNKNOWN,
    EndsSeen,
    Standing,
    drain_s,
    group_lag,
    stand,
    summed,
    trend,
    waited_s,
)
from penstock.model.ids import TopicPartition

ITEM = TopicPartition("orders", 0)


def seen(*ends: int) -> EndsSeen:
    """Looks a second apart, beginning at 1 s."""
    found = EndsSeen()
    for second, end in enumerate(ends, 1):
        found.put(second * 1_000, {ITEM: end}, [ITEM])
    return found


def test_a_position_is_behind_by_the_time_since_the_end_stood_there() -> None:
    ends = seen(0, 100, 200)
    assert ends.behind_s(ITEM, 200, 200, 3_000) == 0
    assert ends.behind_s(ITEM, 100, 200, 3_000) == 1.0
    assert ends.behind_s(ITEM, 150, 200, 3_000) == 0.5
    assert ends.behind_s(ITEM, 200, 300, 4_000) == 1.0, "it came after the last look"


def test_what_waited_before_anybody_looked_has_no_number() -> None:
    assert seen(100, 200).behind_s(ITEM, 50, 200, 3_000) is None
    assert seen(100).behind_s(TopicPartition("other", 0), 0, 5, 3_000) is None


@given(st.lists(st.integers(0, 50), min_size=1, max_size=2 * LOOKS_KEPT), st.integers(0, 3_000), st.integers(0, 5_000))
def test_seconds_are_never_negative_and_never_less_for_who_is_further_behind(
    steps: list[int], committed: int, later_ms: int
) -> None:
    ends = [sum(steps[: count + 1]) for count in range(len(steps))]
    looks, now_ms = seen(*ends), len(ends) * 1_000 + later_ms
    behind = looks.behind_s(ITEM, committed, ends[-1], now_ms)
    further = looks.behind_s(ITEM, committed - 1, ends[-1], now_ms)
    assert behind is None or behind >= 0
    if behind is not None and further is not None:
        assert further >= behind
    if behind is None:
        assert further is None


def test_lag_is_never_negative() -> None:
    other = TopicPartition("orders", 1)
    found = stand({ITEM: 10, other: 3, TopicPartition("gone", 0): 1}, {ITEM: 7, other: 9}, {}, 0)
    assert {item: standing.lag for item, standing in found.items()} == {
        ITEM: 0,
        other: 6,
        TopicPartition("gone", 0): None,
    }


def test_a_lag_in_which_a_partition_is_missing_is_not_told() -> None:
    known, missing = Standing(3, 9, None), Standing(3, None, None)
    assert group_lag({ITEM: known}, seen(9), 2_000).records == 6
    partly = group_lag({ITEM: known, TopicPartition("orders", 1): missing}, seen(9), 2_000)
    assert (partly.records, partly.topics["orders"].since_ms) == (None, UNKNOWN)
    assert group_lag({}, seen(9), 2_000).records is None
    assert summed([1, None, 2]) is None


def test_what_waits_longest_in_a_topic_is_its_wait() -> None:
    later = TopicPartition("orders", 1)
    ends = EndsSeen()
    for second, first, second_end in ((1, 0, 0), (2, 100, 0), (3, 100, 50)):
        ends.put(second * 1_000, {ITEM: first, later: second_end}, [ITEM, later])
    found = group_lag({ITEM: Standing(0, 100, 2.0), later: Standing(0, 50, 3.0)}, ends, 3_000)
    assert waited_s(found.topics["orders"].since_ms, 4_000) == 3.0
    assert (found.records, found.consumed) == (150, 5.0)
    caught_up = group_lag({ITEM: Standing(100, 100, None)}, ends, 3_000)
    assert waited_s(caught_up.topics["orders"].since_ms, 4_000) == 0.0


def test_rates_are_of_what_was_read_between_looks_and_level_out() -> None:
    first = stand({ITEM: 100}, {ITEM: 200}, {}, 0)
    second = stand({ITEM: 150}, {ITEM: 200}, first, 10)
    third = stand({ITEM: 150}, {ITEM: 200}, second, 10)
    assert [each[ITEM].rate for each in (first, second, third)] == [None, 5.0, 2.5]


def test_a_group_that_is_slower_than_its_producers_never_catches_up() -> None:
    assert drain_s(100, 10.0, 20.0) == 10.0
    assert drain_s(100, 20.0, 20.0) is None
    assert drain_s(100, None, 20.0) is None
    assert drain_s(0, 20.0, 0.0) == 0.0


def test_a_trend_needs_some_points_and_some_difference() -> None:
    assert trend([1, 2, 3]) == "unknown"
    assert trend([10, 10, None, 10, 100, 100, 100]) == "growing"
    assert trend([100, 100, 50, 50, 1, 1]) == "falling"
    assert trend([100, 101, 100, 101, 102, 101]) == "steady"
