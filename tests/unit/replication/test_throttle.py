"""The throttle's window, by a clock that the test moves."""

from __future__ import annotations

from penstock.model.ids import NodeId
from penstock.replication.throttle import SAMPLE_MS, SAMPLES, Throttle, lists


def test_nothing_went_by_so_nothing_is_exceeded() -> None:
    assert not Throttle(lambda: 0).exceeded(5.0)


def test_the_first_second_counts_as_a_whole_one() -> None:
    throttle = Throttle(lambda: 1_000)
    throttle.count(1_000, 0)
    assert not throttle.exceeded(0)
    throttle.count(1, 1)
    assert throttle.exceeded(1)


def test_time_pays_off_what_was_taken_too_fast() -> None:
    throttle = Throttle(lambda: 1_000)
    throttle.count(5_000, 0)
    assert [throttle.exceeded(second * 1_000) for second in (1, 4, 5)] == [True, True, False]


def test_what_is_older_than_the_window_is_forgotten() -> None:
    throttle = Throttle(lambda: 10)
    throttle.count(1_000_000, 0)
    assert throttle.exceeded(SAMPLES * SAMPLE_MS - 1)
    assert not throttle.exceeded(SAMPLES * SAMPLE_MS)


def test_the_long_run_rate_is_the_one_that_was_asked_for() -> None:
    """A copier that moves 64 KB whenever it may comes to the rate within five percent."""
    rate = 1 << 20
    throttle = Throttle(lambda: rate)
    moved = 0
    for now_ms in range(0, 60_000, 10):
        if not throttle.exceeded(now_ms):
            throttle.count(64 << 10, now_ms)
            moved += 64 << 10
    assert 0.95 * rate <= moved / 60 <= 1.05 * rate


def test_a_new_rate_counts_at_once() -> None:
    rates = [10]
    throttle = Throttle(lambda: rates[0])
    throttle.count(100, 0)
    assert throttle.exceeded(0)
    rates[0] = 1_000
    assert not throttle.exceeded(0)


def test_a_list_names_replicas_by_partition_and_broker() -> None:
    node = NodeId(3)
    assert lists(("1:3", "2:4"), 1, node)
    assert not lists(("1:3", "2:4"), 2, node)
    assert lists(("*",), 7, node)
    assert not lists((), 7, node)
