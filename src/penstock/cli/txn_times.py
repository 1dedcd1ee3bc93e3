"""Moments as `penstock txn` reads and writes them."""

from __future__ import annotations

import time


def moment(at_ms: int) -> str | None:
    """A time that a broker or a record has; None where there is none."""
    from penstock.operations.records.times import strftime

    return strftime(at_ms, "%Y-%m-%d %H:%M:%SZ") if at_ms >= 0 else None


def now_ms() -> int:
    return time.time_ns() // 1_000_000
