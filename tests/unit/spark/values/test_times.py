"""Dates and instants as Spark reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.values.times import days_of, micros_of


def micros(*when: int) -> int:
    return (datetime(*when, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-03-04T05:06:07Z", micros(2026, 3, 4, 5, 6, 7)),
        ("2026-03-04 05:06:07", micros(2026, 3, 4, 5, 6, 7)),
        ("2026-03-04T05:06:07.5+02:00", micros(2026, 3, 4, 3, 6, 7, 500_000)),
        ("2026-03-04T05:06:07.123456789Z", micros(2026, 3, 4, 5, 6, 7, 123_456)),
        ("2026-03-04 05:06:07 Europe/Berlin", micros(2026, 3, 4, 4, 6, 7)),
        ("2026-07-04 05:06:07 Europe/Berlin", micros(2026, 7, 4, 3, 6, 7)),
        ("2026-03-04 05:06:07 UTC+2", micros(2026, 3, 4, 3, 6, 7)),
        ("2026-03-04T05:06", micros(2026, 3, 4, 5, 6)),
        ("2026-3-4 5:6:7", micros(2026, 3, 4, 5, 6, 7)),
        ("2026-03-04", micros(2026, 3, 4)),
        ("2026-03", micros(2026, 3, 1)),
        ("2026", micros(2026, 1, 1)),
        (" 2026-03-04 ", micros(2026, 3, 4)),
        ("+12026-01-01", 317_336_745_600_000_000),
    ],
)
def test_an_instant(text: str, found: int) -> None:
    assert micros_of(text, zoned=True) == found


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x",
            "26-01-01",
            "2026-13-01",
            "2026-02-29",
            "2026-01-01T24:00",
            "2026-01-01 10:60",
            "2026-01-01T10:00:60",
        ),
        *("2026-01-01X10:00", "2026-01-01 10:00 Mars/Base", "2026-01-01 10:00+25:00", "10:00:00", "T10:00"),
        *("2026-01T10:00", "999999-01-01 00:00:00", "2026-01-01T10:00:00+", "٢٠٢٦-01-01"),
    ],
)
def test_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$|invalid"):
        micros_of(text, zoned=True)


def test_an_instant_without_a_zone_takes_none() -> None:
    assert micros_of("2026-03-04 05:06:07.25", zoned=False) == micros(2026, 3, 4, 5, 6, 7, 250_000)
    with pytest.raises(ValueError, match=r"^$"):
        micros_of("2026-03-04 05:06:07Z", zoned=False)


def test_a_date_may_have_a_time_behind_it() -> None:
    assert days_of("2026-03-04T05:06:07Z") == days_of("2026-3-4 whatever") == days_of("2026-03-04")
    for text in ("2026-03 x", "2026-03-04x", "2026-02-30", "today"):
        with pytest.raises(ValueError, match=r"^$"):
            days_of(text)


@given(st.dates())
def test_days_are_those_of_the_calendar(day: date) -> None:
    assert days_of(str(day)) == (day - date(1970, 1, 1)).days


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_are_those_of_arrow(instant: datetime) -> None:
    text = instant.isoformat()
    assert (
        micros_of(text, zoned=True) == pa.array([text]).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())[0].as_py()
    )
