"""Timestamps as text, with Go's example layouts or strftime's letters. Always UTC.

Any 64-bit number is a timestamp to Kafka. One that lies outside of the years 1 to 9999 is written as its milliseconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Longest first: `January` before `Jan`, `2006` before `2`.
_GO = re.compile(
    r"2006|06|January|Jan|Monday|Mon|MST|Z07:00|Z0700|-07:00|-0700|-07|[.,]0+(?!\d)|[.,]9+(?!\d)"
    r"|002|01|02|_2|03|04|05|15|PM|pm|1|2|3|4|5"
)


def moment(timestamp_ms: int) -> datetime | None:
    """None when the calendar has no such day."""
    try:
        return _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None


def strftime(timestamp_ms: int, layout: str) -> str:
    when = moment(timestamp_ms)
    return str(timestamp_ms) if when is None else when.strftime(layout)


def go_time(timestamp_ms: int, layout: str) -> str:
    """A time written the way Go writes 2006-01-02T15:04:05Z07:00."""
    when = moment(timestamp_ms)
    if when is None:
        return str(timestamp_ms)
    return _GO.sub(lambda found: _go_piece(found[0], when), layout)


def _go_piece(piece: str, when: datetime) -> str:
    if piece[0] in ".,":
        digits = f"{when.microsecond:06}000"[: len(piece) - 1]
        if "9" in piece:
            digits = digits.rstrip("0")
        return piece[0] + digits if digits else ""
    twelve = when.hour % 12 or 12
    plain = {
        "2006": f"{when.year:04}", "06": f"{when.year % 100:02}",
        "January": when.strftime("%B"), "Jan": when.strftime("%b"), "01": f"{when.month:02}", "1": str(when.month),
        "Monday": when.strftime("%A"), "Mon": when.strftime("%a"),
        "02": f"{when.day:02}", "_2": f"{when.day:2}", "2": str(when.day), "002": f"{when.timetuple().tm_yday:03}",
        "15": f"{when.hour:02}", "03": f"{twelve:02}", "3": str(twelve),
        "04": f"{when.minute:02}", "4": str(when.minute), "05": f"{when.second:02}", "5": str(when.second),
        "PM": "PM" if when.hour > 11 else "AM", "pm": "pm" if when.hour > 11 else "am",
        "MST": "UTC", "Z07:00": "Z", "Z0700": "Z", "-07:00": "+00:00", "-0700": "+0000", "-07": "+00",
    }  # fmt: skip
    return plain[piece]
