from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.lags import LOOKS_KEPT, EndsSeen, lag_of, trend
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
    assert lag_of({ITEM: 10, other: 3, TopicPartition("gone", 0): 1}, {ITEM: 7, other: 9}) == {ITEM: 0, other: 6}


def test_a_trend_needs_some_points_and_some_difference() -> None:
    assert trend([1, 2, 3]) == "unknown"
    assert trend([10, 10, None, 10, 100, 100, 100]) == "growing"
    assert trend([100, 100, 50, 50, 1, 1]) == "falling"
    assert trend([100, 101, 100, 101, 102, 101]) == "steady"
