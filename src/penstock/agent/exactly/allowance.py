"""How much goes into a transaction: what the link carries well within its timeout. Pure.

A transaction that outlives its timeout is aborted and all of it is sent again. In the same size it would be aborted
again, for ever, where the link is thin. So the first is small, each that went quickly lets the next be twice as large,
and one that took half of the timeout halves it.
"""

from __future__ import annotations

from typing import Final

FIRST_BYTES: Final = 1 << 20
BYTES_MIN: Final = 64 << 10
"""Portions are not cut, so less than one is never sent."""
BYTES_MAX: Final = 1 << 30
SLOW: Final = 2
QUICK: Final = 8
"""One part in so many of the timeout is long, or short."""


class Allowance:
    """Of one agent."""

    def __init__(self, timeout_ms: float) -> None:
        self._timeout_ms = timeout_ms
        self.bytes = FIRST_BYTES

    def learn(self, filled_bytes: int, took_ms: float, *, committed: bool) -> None:
        """From a transaction that has ended."""
        if took_ms * SLOW >= self._timeout_ms:
            self.bytes = max(min(self.bytes, filled_bytes) // 2, BYTES_MIN)
        elif committed and filled_bytes >= self.bytes and took_ms * QUICK <= self._timeout_ms:
            self.bytes = min(self.bytes * 2, BYTES_MAX)
