"""Lines that are written over themselves."""

from __future__ import annotations

import pytest

from penstock.cli.progress import bar, one_line


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
def test_a_line_that_is_too_long_ends_with_a_sign_that_it_is_cut(columns: int) -> None:
    words = "copied [####----] 3 of 20 partitions, 1.5 GB of 20.0 GB"
    line = one_line(words, columns)
    # The last column stays free: terminals go to the next line after it.
    assert len(line) <= columns - 1
    assert line == words or (line.endswith("…") and words.startswith(line[:-1]))


@pytest.mark.parametrize(("columns", "cells"), [(20, 5), (60, 15), (200, 24)])
def test_a_bar_is_a_quarter_of_the_line_at_most(columns: int, cells: int) -> None:
    assert bar(0.5, 24, columns) == "#" * (cells // 2) + "." * (cells - cells // 2)


def test_a_bar_is_full_at_the_end_and_not_beyond() -> None:
    assert bar(1.7, 8, 80) == "#" * 8
