"""Sizes and times in words, both ways, for people."""

from __future__ import annotations

_SIZES = (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


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
