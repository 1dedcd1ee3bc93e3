"""Rates, counts, trends and bars as people read them; sizes and times are in `model.units`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def rate(count_per_s: float) -> str:
    """`0`, `0.4`, `12`, `12,345`."""
    return f"{count_per_s:.1f}" if 0 < count_per_s < 9.95 else f"{count_per_s:,.0f}"


def megabytes(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e6:,.1f}" if bytes_per_s else "0"


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
