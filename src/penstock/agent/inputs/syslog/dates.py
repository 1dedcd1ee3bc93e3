"""Dates as syslog senders write them. Pure: the time that is now comes in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# `Nov 16 10:00:00`, with a year in either place, with fractions, with a zone: Cisco writes `10:00:00.123 UTC:`.
# A capital word after the time is more often a host than a zone, unless a colon follows or it can be nothing else.
_BSD: Final = re.compile(
    rf"(?P<month>{'|'.join(_MONTHS)}) {{1,2}}(?P<day>\d{{1,2}}) (?:(?P<early>(?:19|20)\d\d) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?: (?P<late>(?:19|20)\d\d)(?= |: |$))?(?: (?P<zone>UTC|GMT|Z|[A-Z]{2,5}(?=:)))?(?=[ :]|$)",
    re.ASCII,
)
_ISO: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>Z|[+-]\d\d:?\d\d)?(?=[ :]|$)",
    re.ASCII,
)
_YEARS_AROUND: Final = (0, -1, 1, -2, 2, -3, 3, -4, 4)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Whoever is nearer than this is the nearest of all years.
_HALF_A_YEAR: Final = timedelta(days=150)


class Moment(NamedTuple):
    """A date that was read: as ISO text, in milliseconds, and the place behind it."""

    iso: str
    ms: int
    end: int


def read_date(text: str, at: int, now_ms: int, zone: tzinfo | None) -> Moment | None:
    """The date that stands at `at`, None when there is none.

    `zone` is the one of dates that name none; None means this machine's.
    """
    found = _BSD.match(text, at)
    if found is not None:
        moment = _bsd(found, now_ms, zone)
    else:
        found = _ISO.match(text, at)
        if found is None:
            return None
        moment = _iso(found, zone)
    return None if moment is None else Moment(moment.isoformat(), _milliseconds(moment), found.end())


def iso_ms(text: str) -> int | None:
    """A date of RFC 5424, with its zone, in milliseconds; None when there is no such date."""
    try:
        return _milliseconds(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _bsd(found: re.Match[str], now_ms: int, zone: tzinfo | None) -> datetime | None:
    named = UTC if found["zone"] in ("UTC", "GMT", "Z") else zone
    given = found["early"] or found["late"]
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    years = [int(given)] if given else [now.year + away for away in _YEARS_AROUND]
    month, micros = _MONTHS.index(found["month"]) + 1, int((found["fraction"] or "0").ljust(6, "0")[:6])
    best: datetime | None = None
    for year in years:
        try:
            moment = _aware(
                datetime(
                    year,
                    month,
                    int(found["day"]),
                    int(found["hour"]),
                    int(found["minute"]),
                    int(found["second"]),
                    micros,
                ),
                named,
            )
        except (ValueError, OverflowError):
            # The 29th of February is not in every year, and 61 is in no minute.
            continue
        if best is None or abs(moment - now) < abs(best - now):
            best = moment
        if best is not None and abs(best - now) < _HALF_A_YEAR:
            break
    return best


def _iso(found: re.Match[str], zone: tzinfo | None) -> datetime | None:
    fraction = (found["fraction"] or "")[:6]
    text = f"{found['day']}T{found['time']}{'.' + fraction.ljust(6, '0') if fraction else ''}{found['zone'] or ''}"
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else _aware(moment, zone)
    except (ValueError, OverflowError):
        return None


def _aware(moment: datetime, zone: tzinfo | None) -> datetime:
    """Without a zone it is this machine's local time."""
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
