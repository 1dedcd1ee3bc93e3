"""Freshness is from the moment a line was written to the commit that brought it; the rest is arithmetic."""

from __future__ import annotations

from penstock.demo.evidence import Landing, Timings
from penstock.demo.measures import freshness_s, peak_rows_per_s, percentile, speed
from penstock.demo.summary import figures

LANDINGS = [
    Landing(1_000, ((0, 0, 10), (1, 0, 5)), 15),
    Landing(3_000, ((0, 10, 30),), 20),
    Landing(4_000, ((1, 5, 6),), 1),
]


def test_a_row_is_as_fresh_as_the_commit_of_its_offset() -> None:
    rows = [(0, 0, 400), (0, 9, 400), (0, 10, 2_000), (0, 29, 2_500), (1, 4, 0), (1, 5, 3_500)]
    assert freshness_s(rows, LANDINGS) == [0.6, 0.6, 1.0, 0.5, 1.0, 0.5]


def test_percentiles_of_few_values_are_values() -> None:
    assert [percentile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 0.99)] == [1.0, 2.0, 3.0]
    assert percentile([], 0.5) == 0.0


def test_the_peak_is_the_most_between_two_commits() -> None:
    assert peak_rows_per_s(LANDINGS, -9_000) == 10.0
    assert peak_rows_per_s([], 0) == 0.0


def test_a_first_commit_that_brings_nearly_everything_is_the_peak() -> None:
    assert peak_rows_per_s(LANDINGS, 500) == 30.0


def test_figures_name_only_what_happened() -> None:
    found = speed(lines=100, size_bytes=20_000, seconds=10, rows=[(0, 0, 500)], landings=LANDINGS)
    assert (found.lines_per_s, found.bytes_per_s, found.fresh_p50_s, found.commits) == (10.0, 2_000.0, 0.5, 3)
    assert [name for name, _ in figures(found, Timings())] == ["throughput", "catching up", "freshness"]
    every = Timings(1.2, 0.3, 15.0, 2.0)
    assert [name for name, _ in figures(found, every)][3:] == ["node killed", "agent killed", "pipeline killed"]
