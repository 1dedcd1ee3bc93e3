"""Times in the forms that logs have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.routing.moments import moment_reader, read_zone

NOW_MS = 1_794_823_200_000
ONE_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z"""


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [
        ("2026-01-01T00:00:00Z", ONE_MS),
        ("2026-01-01 01:00:00,500+01:00", ONE_MS + 500),
        ("2026-01-01", ONE_MS),
        ("20260101", ONE_MS),
        ("2026-01-01T00:00:00.123456789Z", ONE_MS + 123),
        ("[01/Jan/2026:01:00:00 +0100]", ONE_MS),
        (1_767_225_600, ONE_MS),
        (1_767_225_600.25, ONE_MS + 250),
        ("1767225600.25", ONE_MS + 250),
        (1_767_225_600_001, ONE_MS + 1),
        (1_767_225_600_001_999, ONE_MS + 1),
        (1_767_225_600_001_999_999, ONE_MS + 1),
        ("1767225600001999999", ONE_MS + 1),
        ("Thursday", None),
        (None, None),
        (True, None),
        ("", None),
        (float("inf"), None),
    ],
)
def test_the_form_is_told_by_looking(value: object, expected_ms: int | None) -> None:
    assert moment_reader()(value, NOW_MS) == expected_ms


def test_a_text_without_a_year_is_the_latest_that_is_not_to_come() -> None:
    read = moment_reader("%b %d %H:%M:%S")
    january_ms = ONE_MS + 60_000
    assert read("Dec 31 23:59:00", january_ms) == ONE_MS - 60_000
    assert read("Jan 1 00:00:30", january_ms) == ONE_MS + 30_000


def test_a_leap_day_without_a_year_is_in_the_year_that_has_one() -> None:
    in_2028_ms = int(datetime(2028, 3, 1, tzinfo=UTC).timestamp() * 1_000)
    expected_ms = int(datetime(2028, 2, 29, tzinfo=UTC).timestamp() * 1_000)
    assert moment_reader("%b %d")("Feb 29", in_2028_ms) == expected_ms


def test_the_zone_is_for_times_that_name_none() -> None:
    read = moment_reader("iso", read_zone("Europe/Berlin"))
    assert read("2026-07-01T02:00:00", NOW_MS) == read("2026-07-01T00:00:00Z", NOW_MS)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2026, 1, 1)), st.integers(-720, 840))
def test_iso_and_apache_times_in_any_zone(local: datetime, minutes: int) -> None:
    moment = local.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    expected_ms = int(moment.timestamp()) * 1_000
    assert moment_reader("iso")(moment.isoformat(), NOW_MS) == expected_ms
    assert moment_reader("apache")(moment.strftime("%d/%b/%Y:%H:%M:%S %z"), NOW_MS) == expected_ms


@given(
    st.sampled_from(["auto", "iso", "apache", "epoch_s", "epoch_us", "%H:%M"]), st.text() | st.floats() | st.integers()
)
def test_no_value_makes_a_reader_raise(form: str, value: object) -> None:
    found = moment_reader(form)(value, NOW_MS)
    assert found is None or 0 <= found < NOW_MS + 3_600_000
