"""The grammar of `-o`, and where its points lie in a partition."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operations.records.offsets import (
    BadOffset,
    Point,
    Range,
    parse_duration_ms,
    parse_point,
    parse_range,
    place,
)

NOW_MS = 1_648_021_901_749
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
VALENTINE_MS = 1_644_796_800_000
START, END = Point("start"), Point("end")


def at(number: int) -> Point:
    return Point("offset", number)


def when(number: int) -> Point:
    return Point("time", number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", Range(START)),
        ("oldest", Range(START)),
        ("end", Range(END)),
        ("newest", Range(END)),
        (":end", Range(START, END)),
        ("+3", Range(Point("start", 3))),
        ("-3", Range(Point("end", -3))),
        ("-3:end", Range(Point("end", -3), END)),
        ("35", Range(at(35))),
        ("35:", Range(at(35))),
        (":23", Range(START, at(23))),
        ("90:91", Range(at(90), at(91))),
        ("90-91", Range(at(90), at(91))),
        ("90:end", Range(at(90), END)),
        ("90-end", Range(at(90), END)),
        ("@1648021901749:1748021901749", Range(when(NOW_MS), when(1_748_021_901_749))),
        ("@1648021901", Range(when(1_648_021_901_000))),
        ("@1648021901:", Range(when(1_648_021_901_000))),
        ("@2022-02-14", Range(when(VALENTINE_MS))),
        ("@2022-02-14:1h", Range(when(VALENTINE_MS), when(VALENTINE_MS + HOUR_MS))),
        ("@2022-02-14:2022-02-15", Range(when(VALENTINE_MS), when(VALENTINE_MS + DAY_MS))),
        ("@2022-03-23T07:51:41.749Z", Range(when(NOW_MS))),
        ("@2022-03-23T07:51:41.7Z", Range(when(NOW_MS - 49))),
        ("@2022-03-23T07:51:41.Z:1h", Range(when(NOW_MS - 749), when(NOW_MS - 749 + HOUR_MS))),
        (
            "@2022-03-23T07:51:41Z:2022-03-23T07:52:41Z",
            Range(when(NOW_MS - 749), when(NOW_MS - 749 + 60_000)),
        ),
        ("@2022-03-23T09:51:41+02:00", Range(when(NOW_MS - 749))),
        ("@-48h:-24h", Range(when(NOW_MS - 2 * DAY_MS), when(NOW_MS - DAY_MS))),
        ("@-1m:end", Range(when(NOW_MS - 60_000), END)),
        ("@:-1hr", Range(START, when(NOW_MS - HOUR_MS))),
        ("@9999-12-31", Range(when(253_402_214_400_000))),
        ("@253402300800000", Range(when(253_402_300_800_000))),
        ("@9223372036854775808", Range(when((1 << 63) - 1))),
        ("@999999999999d", Range(when((1 << 63) - 1))),
        ("@1969-12-31T23:59:59.999Z", Range(when(0))),
        ("@1901-01-01:1970-01-02", Range(when(0), when(DAY_MS))),
        ("@-9000000h", Range(when(0))),
        ("9223372036854775807", Range(at((1 << 63) - 1))),
        ("@-1h30m", Range(when(NOW_MS - HOUR_MS - 30 * 60_000))),
    ],
)
def test_every_spelling_has_one_meaning(text: str, expected: Range) -> None:
    assert parse_range(text, NOW_MS) == expected


@pytest.mark.parametrize(
    "text",
    ["", ":", "+a", "-a", "a", "90:39", "90:a", "5:-3", "5:start", "@", "@:", "@soon", "@2022-02-30", "@-03-23T07:51",
     "@2022-02-15:2022-02-14", "@2022-02-14:soon", "@3", "9" * 30,
     "9223372036854775808", "0:9223372036854775808", "+9223372036854775808", "-9999999999999999999"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_words(text: str) -> None:
    with pytest.raises(BadOffset):
        parse_range(text, NOW_MS)


def test_a_range_is_no_place_to_seek_to() -> None:
    assert parse_point("@-1h", NOW_MS) == when(NOW_MS - HOUR_MS)
    with pytest.raises(BadOffset, match="one place"):
        parse_point("5:9", NOW_MS)


@pytest.mark.parametrize(
    ("point", "offset"),
    [
        (START, 10),
        (END, 20),
        (Point("start", 3), 13),
        (Point("start", 30), 20),
        (Point("end", -3), 17),
        (Point("end", -30), 10),
        (at(5), 10),
        (at(15), 15),
        (at(25), 25),
        (when(7), 12),
        (when(8), 20),
    ],
)
def test_a_point_lies_within_the_log_unless_an_offset_to_come_was_named(point: Point, offset: int) -> None:
    assert place(point, 10, 20, {7: 12, 8: -1}) == offset


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_relative_points_never_leave_the_log(start: int, length: int, plus: int, minus: int) -> None:
    end = start + length
    for text in (f"+{plus}", f"-{minus}", "start", "end"):
        assert start <= place(parse_range(text, NOW_MS).first, start, end, {}) <= end


@given(st.text(alphabet="0123456789:-+@hmsTZ.end", max_size=12))
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    with contextlib.suppress(BadOffset):
        parse_range(text, NOW_MS)


@pytest.mark.parametrize(("text", "expected"), [("3ms", 3), ("10s", 10_000), ("1m3ms", 60_003), ("2d", 2 * DAY_MS)])
def test_durations(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "5", "h", "5x", "-5s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(BadOffset, match="no duration"):
        parse_duration_ms(text)
