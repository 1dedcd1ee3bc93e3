"""Sizes and times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.declared.amounts import duration_of, duration_text, plain_amount, size_of, size_text
from penstock.declared.fields import Notes, Table
from penstock.declared.positions import Positions


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64 MB", 64 << 20),
        ("1 GiB", 1 << 30),
        ("4096", 4096),
        ("1.5k", 1536),
        ("10b", 10),
        (" 2 tb ", 2 << 40),
        ("5 ib", None),
        ("MB", None),
        ("", None),
        ("-1 MB", None),
        ("1 MB 2", None),
    ],
)
def test_a_size(text: str, size: int | None) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("log.retention.ms", "7d", "604800000"),
        ("log.retention.hours", "7d", "168"),
        ("log.retention.hours", "90m", None),
        ("segment_bytes", "1GiB", "1073741824"),
        ("log.retention.bytes", "-1", "-1"),
        ("log.retention.ms", "a week", None),
        ("cleanup.policy", "7d", "7d"),
        ("log.segment.bytes", "", ""),
    ],
)
def test_the_end_of_a_propertys_name_tells_its_unit(name: str, value: str, plain: str | None) -> None:
    assert plain_amount(name, value) == plain


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("20ms", 20),
        ("5s", 5_000),
        ("1m30s", 90_000),
        ("1.5 h", 5_400_000),
        ("1d", 86_400_000),
        ("5", None),
        ("", None),
        ("soon", None),
        ("5s soon", None),
        ("-5s", None),
    ],
)
def test_a_time(text: str, duration_ms: int | None) -> None:
    assert duration_of(text) == duration_ms


@given(st.integers(0, 1 << 45))
def test_what_is_written_is_read_again(number: int) -> None:
    assert size_of(size_text(number)) == number
    assert duration_of(duration_text(number)) == number


def table(text: str) -> Table:
    import tomllib

    return Table(tomllib.loads(text), (), Notes(Positions(text)), "the file")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('n = "many"', "n must be a whole number such as 5, not a text"),
        ("n = true", "n must be a whole number such as 5, not true or false"),
        ("n = 11", "n = 11 is out of bounds: it must be from 1 to 10"),
        ('n = "11"', "n = 11 is out of bounds: it must be from 1 to 10"),
    ],
)
def test_a_number_that_cannot_be_is_told_with_its_bounds(text: str, words: str) -> None:
    read = table(text)
    assert read.integer("n", 5, 1, 10) == 5
    assert [mistake.words for mistake in read.notes.mistakes] == [words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s = []", 's must be a size such as "1 MB" or a number of bytes, not a list'),
        ('s = "big"', "s must be a size such as \"1 MB\" or a number of bytes, not 'big'"),
        ('s = "1 KB"', "s = '1 KB' is out of bounds: it must be from 4 KB to 1 GB"),
    ],
)
def test_a_size_that_cannot_be_is_told_with_one_that_can(text: str, words: str) -> None:
    read = table(text)
    assert read.size_bytes("s", 1 << 20, low=4096, high=1 << 30) == 1 << 20
    assert [mistake.words for mistake in read.notes.mistakes] == [words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t = 5", 't must be a time with its unit such as "2s", not 5'),
        ('t = "1h"', "t = '1h' is out of bounds: it must be from 0ms to 1m"),
    ],
)
def test_a_time_without_a_unit_is_told(text: str, words: str) -> None:
    read = table(text)
    assert read.duration_ms("t", 2_000, high=60_000) == 2_000
    assert [mistake.words for mistake in read.notes.mistakes] == [words]


def test_what_is_there_and_right_is_taken() -> None:
    read = table('n = "7"\ns = 5000\nt = "3s"\nf = false\n')
    assert (read.integer("n", 5, 1, 10), read.size_bytes("s", 1), read.duration_ms("t", 1)) == (7, 5000, 3_000)
    assert (read.flag("f", True), read.flag("g", True), read.flag("h")) == (False, True, False)
    read.finish()
    assert read.notes.mistakes == []
