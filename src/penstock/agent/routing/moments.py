"""Reading times: of an event's field into milliseconds since 1970. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

ReadMoment: TypeAlias = Callable[[Any, int], int | None]
"""A value and the time now, both of which it may depend on; None when it cannot be read."""

FORMATS: Final = ("auto", "iso", "apache", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns")
_MONTH_NAMES: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)}

FUTURE_MS_MAX: Final = 3_600_000
"""Brokers refuse whole batches for a record that claims to be later than this (message.timestamp.after.max.ms)."""

_MS_OF_UNIT: Final = {"epoch_s": 1_000.0, "epoch_ms": 1.0, "epoch_us": 1e-3, "epoch_ns": 1e-6}
_APACHE = re.compile(r"(\d\d)/([A-Z][a-z][a-z])/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_REMEMBERED_MAX: Final = 8_192
_TIME_CHARACTERS_MAX: Final = 100
"""No time is longer than this; a field may hold a megabyte."""
_DAY_MS: Final = 86_400_000


def read_zone(name: str) -> tzinfo:
    """`UTC`, `+02:00` or `Europe/Berlin`; ValueError when there is none of that name."""
    found = _OFFSET.fullmatch(name)
    try:
        if found is not None:
            minutes = int(found[2]) * 60 + int(found[3])
            return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
        return UTC if name.upper() in ("UTC", "Z") else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"there is no time zone {name!r}: write UTC, +02:00 or a name such as Europe/Berlin"
        ) from error


def moment_reader(form: str = "auto", zone: tzinfo = UTC) -> ReadMoment:
    """What reads times of that form. Texts that were read lately are remembered: logs have many lines a second."""
    if "%" in form:
        return _strftime_reader(form, zone)
    if form.startswith("epoch"):
        unit = _MS_OF_UNIT[form]
        return lambda value, now_ms: _usable(_number(value, unit), now_ms)
    readers: dict[str, Callable[[str, tzinfo], int | None]] = {"iso": _iso, "apache": _apache, "auto": _any}
    read = readers[form]
    remembered: dict[str, int | None] = {}

    def read_text(value: Any, now_ms: int) -> int | None:
        if not isinstance(value, str):
            return _usable(_guessed(value), now_ms) if form == "auto" else None
        if value not in remembered:
            if len(value) > _TIME_CHARACTERS_MAX:
                return None
            if len(remembered) >= _REMEMBERED_MAX:
                remembered.clear()
            remembered[value] = read(value, zone)
        return _usable(remembered[value], now_ms)

    return read_text


def apache_ms(text: str) -> int | None:
    """`10/Oct/2000:13:55:36 -0700`"""
    return _apache(text, UTC)


def _usable(moment_ms: int | None, now_ms: int) -> int | None:
    """Brokers take neither times before 1970 nor far in the future."""
    return moment_ms if moment_ms is not None and 0 <= moment_ms < now_ms + FUTURE_MS_MAX else None


def _milliseconds(moment: datetime, zone: tzinfo) -> int | None:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    try:
        return round(aware.timestamp() * 1_000)
    except (OverflowError, ValueError, OSError):
        return None


def _iso(text: str, zone: tzinfo) -> int | None:
    try:
        return _milliseconds(datetime.fromisoformat(text.strip()), zone)
    except ValueError:
        return None


def _apache(text: str, zone: tzinfo) -> int | None:
    found = _APACHE.fullmatch(text.strip().strip("[]"))
    if found is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    east = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    try:
        there = datetime(int(year), MONTHS[month], int(day), int(hour), int(minute), int(second), 0, timezone(east))
    except (KeyError, ValueError):
        return None
    return _milliseconds(there, zone)


def _any(text: str, zone: tzinfo) -> int | None:
    found = _parsed(text)
    if found is not None and len(text.strip()) > 8:
        # Eight digits are a date in ISO 8601.
        return _guessed(found)
    read = _iso(text, zone)
    return read if read is not None else _apache(text, zone)


def _parsed(text: str) -> int | float | None:
    """The number that a text is. An integer keeps all its digits: nanoseconds do not fit into a float."""
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        return None


def _number(value: Any, unit: float) -> int | None:
    found = _parsed(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    try:
        if isinstance(found, int):
            return int(found * unit) if unit >= 1 else found // round(1 / unit)
        return round(found * unit)
    except (ValueError, OverflowError):
        return None


def _guessed(value: Any) -> int | None:
    """Seconds, milli-, micro- or nanoseconds, by its size: all of them lie in this century."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    for bound, unit in ((1e11, "epoch_s"), (1e14, "epoch_ms"), (1e17, "epoch_us")):
        if abs(value) < bound:
            return _number(value, _MS_OF_UNIT[unit])
    return _number(value, _MS_OF_UNIT["epoch_ns"])


def _strftime_reader(form: str, zone: tzinfo) -> ReadMoment:
    has_year = any(mark in form for mark in ("%Y", "%y", "%G", "%c", "%x", "%s"))

    def read(value: Any, now_ms: int) -> int | None:
        try:
            if has_year:
                return _usable(_milliseconds(datetime.strptime(str(value), form), zone), now_ms)
            return _usable(_without_year(str(value), form, zone, now_ms), now_ms)
        except ValueError:
            return None

    return read


def _without_year(text: str, form: str, zone: tzinfo, now_ms: int) -> int | None:
    """The year that makes it the latest time that is not in the future; in January December was last year."""
    year = datetime.fromtimestamp(now_ms / 1_000, zone).year
    for candidate in (year + 1, year, year - 1):
        try:
            moment_ms = _milliseconds(datetime.strptime(f"{candidate} {text}", f"%Y {form}"), zone)
        except ValueError:
            # The 29th of February is in one of them only.
            continue
        if moment_ms is not None and moment_ms < now_ms + _DAY_MS:
            return moment_ms
    return None
