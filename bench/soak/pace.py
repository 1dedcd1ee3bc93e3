"""How many records are due at a rate that may change. Pure: time comes in with the call."""

from __future__ import annotations

CATCH_UP_S = 2.0
"""A writer that falls behind by more than this has missed the rest: it shall not come in one flood."""


class Pace:
    """`asked` counts everything that was due, also what a writer that fell behind was let off."""

    __slots__ = ("_at_s", "_owed", "_rate", "asked")

    def __init__(self, now_s: float) -> None:
        self._at_s = now_s
        self._rate = 0.0
        self._owed = 0.0
        self.asked = 0.0

    def take(self, rate: float, now_s: float, most: int) -> int:
        """Records to write now, at most so many; the rest stays due. `rate` counts from the last call on."""
        due = (now_s - self._at_s) * self._rate
        self._at_s, self._rate = now_s, rate
        self.asked += due
        self._owed = min(self._owed + due, max(rate * CATCH_UP_S, 1.0))
        taken = min(int(self._owed), most)
        self._owed -= taken
        return taken
