"""Rates over windows and the pauses that bring them down; Kafka's numbers as vectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.quotas.rate import WINDOW_MS, WINDOWS, RateBucket

charges = st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 5_000)), min_size=1, max_size=60)
"""How much later than the one before, and how much."""


def test_pauses_are_those_of_kafkas_classes() -> None:
    bucket = RateBucket(1_000, 0)
    vectors = [
        (0, 9_000, 0, 900.0),
        (100, 2_000, 900, 1_089.11),
        (200, 1_000, 1_800, 1_176.47),
        (1_500, 1_000, 2_500, 1_238.10),
        (5_000, 5_000, 8_000, 1_800.0),
        (12_000, 100, 0, None),
        (12_500, 20_000, 14_600, 2_390.48),
        (20_000, 1, 10_101, 2_010.1),
    ]
    for now_ms, value, pause_ms, rate in vectors:
        assert bucket.charge(value, now_ms) == pause_ms, now_ms
        if rate is not None:
            assert bucket.rate(now_ms) == pytest.approx(rate, abs=0.01), now_ms


def test_a_first_burst_of_ten_seconds_worth_passes() -> None:
    assert RateBucket(1_000, 0).charge(10_000, 0) == 0
    assert RateBucket(1_000, 0).charge(10_001, 0) == 1


def test_what_is_taken_back_does_not_count() -> None:
    bucket = RateBucket(1_000, 0)
    assert bucket.charge(50_000, 0) == 40_000
    bucket.take_back(50_000, 5)
    assert (bucket.rate(5), bucket.charge(10_000, 6)) == (0, 0)


def test_a_limit_that_changes_holds_at_once() -> None:
    bucket = RateBucket(1_000, 0)
    assert bucket.charge(5_000, 0) == 0
    bucket.limit = 100
    assert bucket.charge(0, 0) == 40_000


@given(charges)
def test_a_bucket_says_what_adding_everything_up_says(steps: list[tuple[int, int]]) -> None:
    bucket, plain = RateBucket(1_000, 0), PlainRate()
    now_ms = 0
    for later_ms, value in steps:
        now_ms += later_ms
        plain.record(value, now_ms)
        assert bucket.charge(value, now_ms) == plain.pause_ms(1_000, now_ms)


class PlainRate:
    """The rule as it is told: every sample is looked at every time."""

    def __init__(self) -> None:
        self.samples: list[list[int]] = [[0, 0, 0]]  # begun, last charged, sum
        self.current = 0

    def record(self, value: int, now_ms: int) -> None:
        if now_ms - self.samples[self.current][0] >= WINDOW_MS:
            self.current = (self.current + 1) % (WINDOWS + 1)
            self.samples[self.current : self.current + 1] = [[now_ms, now_ms, 0]]
        self.samples[self.current][1] = now_ms
        self.samples[self.current][2] += value

    def pause_ms(self, limit: int, now_ms: int) -> int:
        fresh = [now_ms, now_ms, 0]
        self.samples = [each if now_ms - each[1] < WINDOWS * WINDOW_MS else fresh[:] for each in self.samples]
        elapsed = now_ms - min(begun for begun, _, _ in self.samples)
        measured = elapsed + max(0, WINDOWS - 1 - elapsed // WINDOW_MS) * WINDOW_MS
        rate = sum(value for _, _, value in self.samples) / (measured / 1_000)
        return 0 if rate <= limit else int((rate - limit) / limit * measured + 0.5)


@given(charges, charges)
def test_a_bucket_in_which_nothing_counts_is_as_good_as_a_new_one(
    before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    used, now_ms = RateBucket(1_000, 0), 0
    for later_ms, value in before:
        now_ms += later_ms
        used.charge(value, now_ms)
    assert not used.is_empty(now_ms + WINDOWS * WINDOW_MS - 1)
    now_ms += WINDOWS * WINDOW_MS
    assert used.is_empty(now_ms)
    assert used.rate(now_ms) == 0
    new = RateBucket(1_000, now_ms)
    for later_ms, value in after:
        now_ms += later_ms
        assert used.charge(value, now_ms) == new.charge(value, now_ms)
