from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from penstock.server.partitions import relocation_pace
from penstock.server.partitions.relocation_pace import Pace
from tests.walks.control_plane import ManualClock


def waited(monkeypatch: pytest.MonkeyPatch, rates: Callable[[float], int], sizes: list[int]) -> list[float]:
    """How many milliseconds each taker waited, when only waiting takes time; `rates` gives the rate at a time."""
    clock = ManualClock()
    began = clock.at_ms

    async def sleep(seconds: float) -> None:
        clock.advance(seconds * 1_000)

    monkeypatch.setattr(relocation_pace, "sleep", sleep)
    pace = Pace(clock, lambda: rates(clock.at_ms - began))

    async def main() -> list[float]:
        waits = []
        for size in sizes:
            before = clock.at_ms
            await pace.take(size)
            waits.append(round(clock.at_ms - before, 1))
        return waits

    return asyncio.run(main())


def test_bytes_are_paid_for_before_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, lambda _at: 1_000, [500, 2_500, 1]) == [0, 500, 2_500]


def test_an_unbounded_rate_makes_nobody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, lambda _at: (1 << 63) - 1, [1 << 40] * 5) == [0] * 5


def test_nothing_is_copied_at_rate_zero_and_a_raise_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, lambda at: 0 if at < 3_000 else 1_000, [10, 10]) == [3_000, 10]
    slow_then_fast = waited(monkeypatch, lambda at: 1 if at < 5_000 else 1 << 40, [1 << 20, 1])
    assert slow_then_fast == [0, 5_000]
