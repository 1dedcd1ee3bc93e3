"""Options that commands share."""

from __future__ import annotations

import click
import pytest

from penstock.cli.amounts import Bytes, Seconds
from penstock.cli.options import pairs


def test_pairs_become_a_mapping_and_values_may_hold_equals_signs() -> None:
    assert pairs(("a=1", " b = x=y ", "c=")) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("given", ["a", "=1", " =1"])
def test_what_is_no_pair_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is not key=value"):
        pairs((given,))


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("retention.ms=7d", "604800000"),
        ("retention.ms=1h30m", "5400000"),
        ("retention.ms=-1", "-1"),
        ("retention.bytes=1GiB", "1073741824"),
        ("segment.bytes=64MB", "67108864"),
        ("segment.bytes=1048576", "1048576"),
        ("log.retention.hours=7d", "168"),
        ("request_timeout_ms=5s", "5000"),
        ("cleanup.policy=compact", "compact"),
        ("retention.ms=", ""),
    ],
)
def test_times_and_sizes_are_read_as_people_write_them(given: str, read: str) -> None:
    assert list(pairs((given,)).values()) == [read]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("retention.ms=7x", "expected whole milliseconds, or a time such as 7d"),
        ("retention.ms=1GiB", "expected whole milliseconds"),
        ("retention.bytes=7d", "expected bytes, or a size such as 1GiB"),
        ("log.retention.hours=90m", "expected whole hours"),
    ],
)
def test_what_is_no_time_or_size_says_what_was_expected(given: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        pairs((given,))


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        (Seconds(min=0), "2", 2.0),
        (Seconds(min=0), "0.5", 0.5),
        (Seconds(min=0), "15m", 900.0),
        (Bytes(1, 1 << 20), "1000", 1_000),
        (Bytes(1, 1 << 20), "64K", 65_536),
    ],
)
def test_options_take_times_and_sizes_too(kind: click.ParamType, given: str, read: float) -> None:
    assert kind.convert(given, None, None) == read


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (Seconds(min=0), "soon", "is no time: expected seconds"),
        (Seconds(5, 60), "2m", "not in the range"),
        (Bytes(1, 1 << 20), "much", "is no size: expected bytes"),
        (Bytes(1, 1 << 20), "2MB", "not in the range"),
    ],
)
def test_options_say_what_times_and_sizes_they_take(kind: click.ParamType, given: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        kind.convert(given, None, None)
