"""Histograms of milliseconds."""

from __future__ import annotations

from penstock.server.loops.timing import Timing


def test_quantiles_are_bounds_of_buckets() -> None:
    timing = Timing()
    for duration_ms in [0.2] * 90 + [4.0] * 9 + [70_000.0]:
        timing.observe(duration_ms)
    assert [timing.quantile(share) for share in (0.5, 0.9, 0.99, 1.0)] == [0.25, 0.25, 5.0, 70_000.0]
    assert timing.count == 100
    assert timing.max_ms == 70_000.0


def test_nothing_seen_is_zero() -> None:
    assert Timing().quantile(0.99) == 0.0
