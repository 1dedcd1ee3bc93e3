"""When keys are fetched, and what strangers cannot make happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.oauth.jwks import HASTENED_APART_MS, MISSING_MAX, KeySet, Missing, RefreshPolicy
from penstock.security.oauth.jws import Key

HOUR = 3_600_000.0
OLD, NEW = (Key(name, "RSA", None, None, {}) for name in ("old", "new"))


def fetched(now: float = 0.0) -> KeySet:
    keys = KeySet(RefreshPolicy())
    assert keys.due(now) == now
    keys.begin(now)
    assert keys.due(now) == float("inf")
    keys.fetched({"old": [OLD]}, now)
    return keys


def test_keys_are_fetched_at_once_and_then_every_hour() -> None:
    keys = fetched(5.0)
    assert keys.find("old", 6.0) == [OLD]
    assert keys.due(6.0) == 5.0 + HOUR
    assert keys.age_ms(7.0) == 2.0


def test_keys_of_a_fetch_that_failed_stay_and_tries_become_rare() -> None:
    keys = fetched()
    waits = []
    for _ in range(9):
        keys.begin(HOUR)
        keys.failed(HOUR)
        waits.append(keys.due(HOUR) - HOUR)
    assert waits == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
    assert keys.find("old", HOUR) == [OLD]
    keys.begin(HOUR)
    keys.fetched({"new": [NEW]}, HOUR)
    assert keys.due(HOUR) == 2 * HOUR
    assert keys.find("old", HOUR) == Missing(True)
    keys.begin(HOUR)
    keys.failed(HOUR)
    assert keys.due(HOUR) - HOUR == 100


def test_an_unknown_key_brings_one_fetch_forward_and_not_again_for_a_minute() -> None:
    keys = fetched()
    assert keys.find("new", 1_000.0) == Missing(True)
    assert keys.due(1_000.0) == 1_000.0
    keys.begin(1_000.0)
    assert keys.find("new", 1_001.0) == Missing(True)
    keys.fetched({"old": [OLD]}, 1_002.0)
    assert keys.find("new", 60_999.0) == Missing(False)
    assert keys.due(60_999.0) == 1_002.0 + HOUR
    assert keys.find("new", 61_000.0) == Missing(True)
    assert keys.due(61_000.0) == 61_000.0
    keys.begin(61_000.0)
    keys.fetched({"new": [NEW]}, 61_001.0)
    assert keys.find("new", 61_002.0) == [NEW]


def test_long_key_ids_bring_nothing_forward() -> None:
    keys = fetched()
    assert keys.find("x" * 1_000, 1_000.0) == Missing(False)
    assert keys.find("x" * 999, 1_000.0) == Missing(True)


def test_a_provider_in_trouble_is_not_asked_more_often() -> None:
    keys = fetched()
    keys.begin(HOUR)
    keys.failed(HOUR)
    assert keys.find("new", HOUR + 1) == Missing(True)
    assert keys.due(HOUR + 1) == HOUR + 100


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 2_000)), max_size=300))
def test_strangers_who_draw_key_ids_cause_few_fetches_and_little_memory(asked: list[tuple[str, int]]) -> None:
    keys, now, fetches = fetched(), 0.0, 0
    for key_id, wait in asked:
        now += wait
        keys.find(key_id, now)
        if keys.due(now) <= now:
            keys.begin(now)
            fetches += 1
            keys.fetched({"old": [OLD]}, now)
    assert len(keys._missing) <= MISSING_MAX
    assert fetches <= 1 + now / HASTENED_APART_MS


def test_one_fetch_at_a_time() -> None:
    keys = KeySet(RefreshPolicy())
    keys.begin(0.0)
    with pytest.raises(AssertionError):
        keys.begin(0.0)
