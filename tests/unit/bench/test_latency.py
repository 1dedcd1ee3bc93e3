"""Latency is open loop: a stall is charged to everything that it held up."""

from __future__ import annotations

import pytest

from penstock.bench.latency import Pace, quantiles, slower_than
from penstock.bench.raw import percentile


def test_things_are_due_at_a_fixed_rate_whatever_became_of_those_before() -> None:
    pace = Pace(per_s=10, seconds=1)
    assert pace.total == 10
    assert [pace.due_by(at_s) for at_s in (0.0, 0.05, 0.1, 0.3, 0.95, 99.0)] == [1, 1, 2, 4, 10, 10]
    assert [pace.due_s(number) for number in (0, 5, 9)] == [0.0, 0.5, 0.9]


def test_nothing_is_due_before_the_start_and_at_least_one_thing_is_in_all() -> None:
    assert Pace(10, 1).due_by(-0.01) == 0
    assert Pace(0.1, 1).total == 1


def test_a_stall_is_charged_to_all_that_it_held_up() -> None:
    """A broker that answers at once, but for one second of ten in which it stalls: a tenth of all is late."""
    pace = Pace(per_s=100, seconds=10)

    def answered_at_s(sent_s: float) -> float:
        return 5.0 if 4.0 <= sent_s < 5.0 else sent_s

    due = [pace.due_s(number) for number in range(pace.total)]
    open_loop = quantiles([(answered_at_s(at) - at) * 1000 for at in due])
    assert open_loop["max"] == pytest.approx(1000)
    assert open_loop["p99.9"] == pytest.approx(990)
    assert open_loop["p99"] == pytest.approx(900)
    assert open_loop["p50"] == 0

    # Whoever waits for each answer before the next is sent sees one slow answer, which no quantile shows.
    closed_loop = quantiles([0.0] * 899 + [1000.0])
    assert closed_loop["p99"] == 0


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, {"p50": 1, "p90": 1, "p99": 1, "p99.9": 1, "max": 1}),
        (10, {"p50": 5, "p90": 9, "p99": 10, "p99.9": 10, "max": 10}),
        (1000, {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999, "max": 1000}),
    ],
)
def test_a_quantile_is_a_value_that_was_measured(count: int, expected: dict[str, int]) -> None:
    assert quantiles(list(range(count, 0, -1))) == expected


def test_the_worst_of_all_is_one_in_as_many_as_there_were() -> None:
    assert [slower_than(name, 5_000) for name in ("p50", "p90", "p99", "max")] == pytest.approx([2, 10, 100, 5_000])


def test_a_percentile_has_no_place_beyond_the_last_value() -> None:
    assert percentile([3.0, 1.0, 2.0], 1.0) == 3.0
