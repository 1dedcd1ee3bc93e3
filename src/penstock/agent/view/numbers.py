"""Numbers as people read them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def size(count: float) -> str:
    """`0 bytes`, `812 bytes`, `1.2 kB`, `64 MB`."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 or count >= 99.5 else f"{count:.3g} {_UNITS[unit]}"


def rate(count_per_s: float) -> str:
    """`0`, `0.4`, `12`, `12,345`."""
    return f"{count_per_s:.1f}" if 0 < count_per_s < 9.95 else f"{count_per_s:,.0f}"


def megabytes(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e6:,.1f}" if bytes_per_s else "0"


def span(seconds: float) -> str:
    """`5 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`."""
    whole = max(0, round(seconds))
    for unit, below, unit_s, below_s in (("d", "h", 86_400, 3_600), ("h", "min", 3_600, 60), ("min", "s", 60, 1)):
        if whole >= unit_s:
            rest = whole % unit_s // below_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def count(number: int, noun: str) -> str:
    """`1 file`, `3 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def trend(values: Sequence[float]) -> str:
    """A line of blocks, the highest of them full; nothing at all is a low line."""
    highest = max(values, default=0.0)
    if highest <= 0:
        return _BLOCKS[0] * len(values)
    return "".join(_BLOCKS[min(7, int(value / highest * 7.999))] for value in values)


def bar(part: float, whole: float, width: int) -> tuple[str, str]:
    """The filled and the empty piece of a bar; a little is never nothing."""
    share = 0.0 if whole <= 0 else min(1.0, part / whole)
    full = max(1, round(share * width)) if share > 0 else 0
    return "━" * full, "━" * (width - full)
