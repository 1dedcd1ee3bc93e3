"""Token buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import Refused
from penstock.security.quotas.tokens import Mutations, TokenBucket


def test_tokens_are_those_of_kafkas_class() -> None:
    bucket = TokenBucket(2, 0)
    assert [bucket.try_take(count, 0) for count in (10, 10, 5)] == [True, True, True]
    assert bucket.tokens(0) == -3
    assert not bucket.try_take(1, 0)
    assert bucket.pause_ms(0) == 1_500
    assert bucket.try_take(1, 2_000)
    assert bucket.tokens(2_000) == 0


def test_what_is_owed_for_less_than_half_a_millisecond_is_owed() -> None:
    """As in Kafka, whose answer tells no pause then. It was let through, and not charged."""
    bucket = TokenBucket(10_000, 0)
    assert bucket.try_take(110_004, 0)
    assert (bucket.try_take(1, 0), bucket.pause_ms(0)) == (False, 0)
    mutations = Mutations(bucket, 0, strict=True)
    with pytest.raises(Refused):
        mutations.take(1)
    assert (mutations.throttle_ms, bucket.tokens(0)) == (0, -4)


def test_a_permissive_charge_is_made_and_tells_the_pause() -> None:
    bucket = TokenBucket(2, 0)
    assert bucket.charge(30, 0) == 4_000
    assert bucket.charge(2, 0) == 5_000


def test_a_bucket_is_forgotten_only_when_it_is_full_again() -> None:
    bucket = TokenBucket(2, 0)
    assert bucket.is_empty(0)
    bucket.charge(122, 0)
    assert not bucket.is_empty(60_000)
    assert bucket.is_empty(61_000)


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 40)), max_size=40))
def test_nothing_is_refused_unless_tokens_are_owed_and_nobody_saves_up_more_than_the_capacity(
    steps: list[tuple[int, int]],
) -> None:
    bucket, now_ms = TokenBucket(2, 0), 0
    for later_ms, count in steps:
        now_ms += later_ms
        before = bucket.tokens(now_ms)
        assert before <= 22
        refused = not bucket.try_take(count, now_ms)
        assert bucket.tokens(now_ms) == (before if before < 0 else before - count)
        if refused:
            assert before < 0
