"""Rates over the last minute, told by whoever asks."""

from __future__ import annotations

from penstock.server.metrics.recent_rate import SPACING_S, WINDOW_S, RecentRate


def test_the_first_rate_is_since_the_start() -> None:
    rate = RecentRate(100.0, 5.0)
    assert rate.per_second(100.0, 5.0) == 0.0
    assert rate.per_second(110.0, 25.0) == 2.0


def test_what_is_older_than_the_window_does_not_count() -> None:
    rate, total = RecentRate(0.0), 0.0
    for second in range(0, 600, int(SPACING_S)):
        total = second * 10.0
        rate.per_second(second, total)
    assert rate.per_second(600.0, total) < 10.0, "nothing has come for a while"
    assert rate.per_second(600.0 + WINDOW_S + SPACING_S, total) == 0.0


def test_asking_often_remembers_no_more() -> None:
    rate = RecentRate(0.0)
    for tick in range(100_000):
        rate.per_second(tick / 100, tick)
    assert len(rate._seen) <= WINDOW_S / SPACING_S + 2
