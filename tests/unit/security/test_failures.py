"""Delays of failed logins: they grow for the guesser, and the table does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.security.failures import FailureDelays


def test_delays_double_from_the_third_failure_up_to_a_bound() -> None:
    delays = FailureDelays()
    found = [delays.failed("10.0.0.1", "alice", float(at)) for at in range(10)]
    assert found == [100, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]


def test_others_are_not_delayed() -> None:
    delays = FailureDelays()
    for at in range(10):
        delays.failed("10.0.0.1", "alice", float(at))
    assert delays.failed("10.0.0.2", "alice", 10.0) == 100
    assert delays.failed("10.0.0.1", "bob", 10.0) == 100


def test_a_success_and_time_make_up_for_failures() -> None:
    delays = FailureDelays()
    for at in range(10):
        delays.failed("a", "alice", float(at))
        delays.failed("b", "alice", float(at))
    delays.succeeded("a", "alice")
    assert delays.failed("a", "alice", 11.0) == 100
    assert delays.failed("b", "alice", 600_009.0) == 100
    delays.succeeded("nobody", "ever")


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=80), st.integers(0, 50)), max_size=200))
def test_the_table_is_bounded_whatever_strangers_call_themselves(tries: list[tuple[str, str, int]]) -> None:
    delays, now = FailureDelays(entries_max=5, forget_after_ms=100), 0.0
    for address, name, wait in tries:
        now += wait
        assert 100 <= delays.failed(address, name, now) <= 5_000
        assert len(delays) <= 5
