"""A soak says how many of its rounds held; running out of time is no fault that was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults import counts

Rounds = Callable[[str, int], Iterator[int]]


@pytest.fixture
def rounds_of(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """Of a test in a soak."""
    monkeypatch.setattr(counts, "HELD", {})
    monkeypatch.setattr(counts, "SOAKING", True)

    def rounds(test: str, full: int) -> Iterator[int]:
        monkeypatch.setenv("PYTEST_CURRENT_TEST", f"a.py::{test} (call)")
        return counts.rounds(1, full)

    return rounds


def test_all_that_was_asked_for_is_told(rounds_of: Rounds) -> None:
    assert list(rounds_of("test_kills", 5)) == [0, 1, 2, 3, 4]
    assert counts.told() == ["5 of 5 rounds held: a.py::test_kills"]


def test_a_soak_that_is_out_of_time_tells_how_many_held_and_tries_one_at_least(
    rounds_of: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MINUTES", 0.0)
    assert list(rounds_of("test_kills", 100)) == [0]
    assert counts.told() == ["1 of 100 rounds held, out of time after 0 minutes or failed: a.py::test_kills"]


def test_a_round_that_fails_has_not_held(rounds_of: Rounds) -> None:
    at_work = rounds_of("test_kills", 5)
    assert [next(at_work) for _ in range(3)] == [0, 1, 2], "and in the third of them it fails"
    assert counts.told()[0].startswith("2 of 5 rounds held")


def test_what_fell_short_comes_first(rounds_of: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    list(rounds_of("test_kills", 1))
    monkeypatch.setattr(counts, "MINUTES", 0.0)
    list(rounds_of("test_seeds", 3))
    assert [line.partition(" rounds")[0] for line in counts.told()] == ["1 of 3", "1 of 1"]
