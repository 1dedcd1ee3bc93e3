"""Sizes, times and counts in words, for people."""

from __future__ import annotations

_SIZES = (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def count(noun: str, number: int, *, grouped: bool = False) -> str:
    """`1 record`, `2 records`, `3 batches`, `4 directories`; large numbers with commas if `grouped`."""
    text = f"{number:,}" if grouped else str(number)
    if number == 1:
        return f"{text} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{text} {noun[:-1]}ies"
    return f"{text} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def bytes_text(size: int) -> str:
    """`1536` becomes `1.5 KB`."""
    for name, unit in _SIZES:
        if abs(size) >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def duration_text(duration_ms: float) -> str:
    """`90000` becomes `1 min 30 s`; below a second in milliseconds."""
    if duration_ms < 1_000:
        return f"{duration_ms:.0f} ms"
    seconds = int(duration_ms // 1_000)
    if seconds < 60:
        return f"{duration_ms / 1_000:.1f} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
