"""Dates and instants as Spark reads them from text. Pure; years of the proleptic Gregorian calendar.

    date       yyyy, yyyy-m, yyyy-m-d, and whatever follows a day after a blank or a T
    instant    such a date, then nothing or [T ]h[:m[:s[.fraction]]], then a zone: Z, +2, +02:00, UTC, Europe/Berlin

An instant without a zone is UTC. Digits after the microsecond are cut off. A time without a date means today in Spark;
here it is refused, since a record must mean the same when it is read again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

MICROS_A_SECOND: Final = 1_000_000
MICROS_A_DAY: Final = 86_400 * MICROS_A_SECOND
LONG_LEAST: Final = -(1 << 63)
LONG_MOST: Final = (1 << 63) - 1
_INT_MOST: Final = (1 << 31) - 1

_DATE: Final = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)
_TIME: Final = re.compile(r"[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?", re.ASCII)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
_OFFSET_MOST_S: Final = 24 * 3600
_DAYS_IN: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_of(text: str) -> int:
    """A date as days since 1970-01-01; `ValueError` when it is none."""
    text = text.strip()
    match = _DATE.match(text)
    if match is None:
        raise ValueError
    rest = text[match.end() :]
    if rest and not (match[4] and rest[0] in " T"):
        raise ValueError
    days = _days(match)
    if abs(days) > _INT_MOST:
        raise ValueError
    return days


def micros_of(text: str, *, zoned: bool) -> int:
    """An instant as microseconds since 1970-01-01; `ValueError` when it is none.

    `zoned` is for TIMESTAMP; a TIMESTAMP_NTZ names no zone.
    """
    text = text.strip()
    match = _DATE.match(text)
    if match is None:
        raise ValueError
    micros = _days(match) * MICROS_A_DAY
    at = match.end()
    if at < len(text):
        if not match[4]:
            raise ValueError
        time = _TIME.match(text, at)
        if time is None:
            raise ValueError
        micros += _micros_of_day(time)
        zone = text[time.end() :].strip()
        if zone:
            if not zoned:
                raise ValueError
            micros = _in_utc(micros, zone)
    if not LONG_LEAST <= micros <= LONG_MOST:
        raise ValueError
    return micros


def _days(match: re.Match[str]) -> int:
    year = int(match[1] + match[2])
    month = int(match[3] or 1)
    day = int(match[4] or 1)
    if not 1 <= month <= 12:
        raise ValueError
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS_IN[month - 1] + (leap and month == 2):
        raise ValueError
    # Years begin in March here, so that the leap day is a year's last; an era of 400 years has 146,097 days.
    years = year - (month <= 2)
    era, of_era = divmod(years, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719_468


def _micros_of_day(match: re.Match[str]) -> int:
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError
    fraction = (match[4] or "")[:6].ljust(6, "0")
    return ((hour * 60 + minute) * 60 + second) * MICROS_A_SECOND + int(fraction)


def _in_utc(local_micros: int, zone: str) -> int:
    if zone in ("Z", "UTC", "GMT", "UT"):
        return local_micros
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
        offset_s = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or offset_s >= _OFFSET_MOST_S:
            raise ValueError
        return local_micros + (-offset_s if match[1] == "+" else offset_s) * MICROS_A_SECOND
    return _in_region(local_micros, zone)


def _in_region(local_micros: int, zone: str) -> int:
    try:
        local = datetime(1970, 1, 1, tzinfo=_region(zone)) + timedelta(microseconds=local_micros)
    except (OverflowError, LookupError, OSError):
        raise ValueError from None
    since = local.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * MICROS_A_SECOND + since.microseconds


@lru_cache(maxsize=256)
def _region(name: str) -> ZoneInfo:
    return ZoneInfo(name)
