"""Whole numbers that come from outside, as text or as JSON. Pure.

`int()` takes what no offset is written with (`_`, digits of other scripts) and fails where there are more than 4,300.
"""

from __future__ import annotations

from typing import Any, Final

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = 19


def whole(given: Any, most: int = INT64_MAX) -> int | None:
    """A number from 0 to `most`, below 2^63; None for what is none."""
    if isinstance(given, str):
        if not (given.isascii() and given.isdigit()) or len(given) > _DIGITS_MAX:
            return None
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool):
        return None
    return given if 0 <= given <= most else None
