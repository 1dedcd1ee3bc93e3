"""A table that is fed in small batches all day: what compaction rewrites of it, and how many files it leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.lake.tiers import FAN_IN, LARGE_ENOUGH, plan

TARGET_BYTES = 128 << 20
DAY = 24 * 60 * 6
"""Batches of ten seconds each."""
REWRITTEN_MOST = 4.0
"""Times the bytes that batches wrote."""


class Table:
    """Files of one partition, compacted as upkeep does it; what comes of rewriting has `share` of what went in."""

    def __init__(self, every: int = 50, target_bytes: int = TARGET_BYTES, share: float = 1.0) -> None:
        self._share = share
        self.files: list[int] = []
        """Those that are not large enough yet: nobody looks at the others again."""
        self.written_bytes = self.rewritten_bytes = self.done_bytes = 0
        self._every, self._target_bytes, self._batches = every, target_bytes, 0

    def add(self, size_bytes: int) -> None:
        self.files.append(size_bytes)
        self.written_bytes += size_bytes
        self._batches += 1
        if self._batches % self._every == 0:
            self.compact()

    def compact(self) -> None:
        bins = plan(self.files, self._target_bytes)
        gone = {place for places in bins for place in places}
        made = [max(1, round(self._share * sum(self.files[place] for place in places))) for places in bins]
        self.rewritten_bytes += sum(made)
        files = [size for place, size in enumerate(self.files) if place not in gone] + made
        self.files = [size for size in files if size < self._target_bytes * LARGE_ENOUGH]
        self.done_bytes += sum(files) - sum(self.files)

    @property
    def rewritten(self) -> float:
        return self.rewritten_bytes / self.written_bytes


def waiting_most(sizes: Sequence[int]) -> int:
    """Files that may wait below the target: nine a tier, from the smallest batch up."""
    return (FAN_IN - 1) * (len(str(TARGET_BYTES)) - len(str(min(sizes))) + 1)


@pytest.mark.parametrize("every", [1, 10, 50, 200])
@pytest.mark.parametrize("batch_bytes", [1_000, 50 << 10, 200 << 10, 1 << 20, 5 << 20, 20 << 20, 70 << 20])
def test_a_day_of_small_batches_is_rewritten_four_times_at_most(batch_bytes: int, every: int) -> None:
    table = Table(every)
    for _ in range(DAY // every * every):
        table.add(batch_bytes)
    assert table.rewritten <= REWRITTEN_MOST
    assert len(table.files) <= waiting_most([batch_bytes])


@pytest.mark.parametrize("share", [0.7, 0.3, 0.1])
@pytest.mark.parametrize("batch_bytes", [1_200, 50 << 10, 200 << 10, 1 << 20])
def test_files_that_shrink_together_are_not_rewritten_more_often(batch_bytes: int, share: float) -> None:
    """Small files are half footer, and values compress better beside their like."""
    table = Table(share=share)
    for _ in range(DAY // 50 * 50):
        table.add(batch_bytes)
    assert table.rewritten <= REWRITTEN_MOST
    assert len(table.files) <= waiting_most([batch_bytes])


SIZES: dict[str, Callable[[random.Random], float]] = {
    "a wide spread": lambda chance: chance.lognormvariate(11, 1.5),
    "a few large ones among tiny ones": lambda chance: chance.lognormvariate(8, 3),
    "two kinds": lambda chance: chance.choice((1_000, 200_000)),
    "either side of a tier's edge": lambda chance: chance.choice((99_999, 100_000)),
}


@pytest.mark.parametrize("kind", SIZES)
def test_whatever_sizes_batches_have(kind: str) -> None:
    chance = random.Random(1)
    sizes = [max(1, min(TARGET_BYTES, int(SIZES[kind](chance)))) for _ in range(DAY // 50 * 50)]
    table = Table()
    for size_bytes in sizes:
        table.add(size_bytes)
    assert table.rewritten <= REWRITTEN_MOST
    assert len(table.files) <= waiting_most(sizes)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, TARGET_BYTES), min_size=1, max_size=12), st.sampled_from([20, 50, 100]))
def test_whatever_pattern_they_come_in(pattern: list[int], every: int) -> None:
    table = Table(every)
    for _, size_bytes in zip(range(DAY // every * every), cycle(pattern), strict=False):
        table.add(size_bytes)
    assert sum(table.files) + table.done_bytes == table.written_bytes, "nothing is lost or doubled"
    assert table.rewritten <= REWRITTEN_MOST
    assert len(table.files) <= waiting_most(pattern)


def bins(*sizes: int, target: int = 1_000, whole: bool = False) -> list[list[int]]:
    return [[sizes[place] for place in places] for places in plan(sizes, target, whole=whole)]


def test_a_tier_waits_until_it_is_full_and_others_are_left_alone() -> None:
    assert bins(*[5] * 9) == []
    assert bins(*[5] * 10, 80) == [[5] * 10]
    assert bins(*[5] * 9, 80, *[5] * 4) == [[5] * 13]
    assert bins() == []


def test_files_that_fill_a_whole_one_do_not_wait() -> None:
    assert bins(400, 400, 400) == [[400, 400]]
    assert bins(500, 999) == [], "of half the target they are large enough"


def test_by_hand_all_small_files_are_taken_together_in_the_tables_order() -> None:
    assert bins(300, 2, 400, 1, whole=True) == [[300, 2, 400, 1]]
    assert bins(300, 2, 700, 400, 400, whole=True) == [
        [300, 2, 400],
    ]
    assert bins(5, whole=True) == []
