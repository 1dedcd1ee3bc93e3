"""Sizes and times as people write them: `64 MB`, `1 GiB`, `20ms`, `1m30s`. Pure."""

from __future__ import annotations

import re
from typing import Final

_NUMBER = r"(\d+(?:\.\d+)?)"
_SIZE = re.compile(rf"\s*{_NUMBER}\s*(?:([kmgt])(?:i?b)?|b)?\s*", re.IGNORECASE)
_DURATION_PART = re.compile(rf"\s*{_NUMBER}\s*(ms|s|m|h|d)", re.IGNORECASE)

# A thousand bytes more or less never matters where these are used; what is printed as 64.0 MB must be 64 MB.
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_NAMED_UNITS_MS: Final = {"ms": 1, "seconds": 1_000, "minutes": 60_000, "hours": 3_600_000}
_PLAIN: Final = re.compile(r"[+-]?\d*")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def size_of(text: str) -> int | None:
    """Bytes; None when it is no size. `MB`, `MiB` and `M` are all 2^20, as `model.units` prints them."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    shift = _SHIFTS[(found[2] or "").lower()]
    return int(float(found[1]) * (1 << shift)) if "." in found[1] else int(found[1]) << shift


def duration_of(text: str) -> int | None:
    """Milliseconds; None when it is no time. Parts add up: `1m30s`."""
    at, total_ms = 0, 0.0
    while at < len(text.rstrip()):
        part = _DURATION_PART.match(text, at)
        if part is None:
            return None
        total_ms += float(part[1]) * _UNITS_MS[part[2].lower()]
        at = part.end()
    return round(total_ms) if at else None


def plain_amount(name: str, value: str) -> str | None:
    """The value of a property as a number in the unit that the end of its name tells: `7d` of `retention.ms`.

    A value is left as it is when it is a number already or the name tells no unit. None for one that is no amount.
    """
    unit = unit_of(name)
    if unit is None or _PLAIN.fullmatch(value):
        return value
    if unit == "bytes":
        size = size_of(value)
        return None if size is None else str(size)
    duration_ms = duration_of(value)
    unit_ms = _NAMED_UNITS_MS[unit]
    return None if duration_ms is None or duration_ms % unit_ms else str(duration_ms // unit_ms)


def unit_of(name: str) -> str | None:
    """What a property counts: bytes, ms, seconds, minutes or hours; None when its name does not tell."""
    unit = re.split(r"[._-]", name)[-1]
    return unit if unit == "bytes" or unit in _NAMED_UNITS_MS else None


def size_text(size: int) -> str:
    """The shortest way to write it: `64 MB`, `1000 B`."""
    for name, shift in (("GB", 30), ("MB", 20), ("KB", 10)):
        if size and not size % (1 << shift):
            return f"{size >> shift} {name}"
    return f"{size} B"


def duration_text(duration_ms: int) -> str:
    """The shortest way to write it: `2m`, `1500ms`."""
    for name in ("h", "m", "s"):
        if duration_ms and not duration_ms % _UNITS_MS[name]:
            return f"{duration_ms // _UNITS_MS[name]}{name}"
    return f"{duration_ms}ms"
