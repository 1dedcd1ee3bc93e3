"""Use a second over the last seconds, and how long to wait until it is within a limit: Kafka's arithmetic, exactly.

Use is counted in samples. A charge a whole window after its sample began starts another; a sample is emptied when all
of them together (11 windows of 1 s) have passed since its last charge, and counts as begun then. The rate is the sum
over the time since the oldest sample began, and that time is at least 10 windows: fewer are taken to have been empty
ones, which lets a first burst of ten seconds' worth through.
"""

from __future__ import annotations

from typing import Final

WINDOW_MS: Final = 1_000
WINDOWS: Final = 11


class RateBucket:
    """What was used of one limit. Times are milliseconds that never fall; a charge may be negative, to take one back.

    Sums are kept up to date as samples come and go instead of being added up at every charge: a charge touches one
    sample, and once a window the slow way looks at all of them. `kept` is false once the table of buckets has forgotten
    it.
    """

    __slots__ = (
        "_current",
        "_emptied_at",
        "_ends",
        "_lasts",
        "_least_s",
        "_oldest",
        "_paused_at",
        "_paused_ms",
        "_pauses",
        "_starts",
        "_total",
        "_values",
        "_window_ms",
        "_windows",
        "kept",
        "limit",
    )

    def __init__(self, limit: float, now_ms: float, window_ms: int = WINDOW_MS, windows: int = WINDOWS) -> None:
        """`limit` is what may be used a second; it may be changed at any time."""
        self.limit = limit
        self.kept = True
        self._window_ms = window_ms
        self._windows = windows
        self._least_s = (windows - 1) * window_ms / 1_000
        self._starts, self._lasts, self._values = [now_ms], [now_ms], [0.0]
        self._current = 0
        self._ends = now_ms + window_ms
        self._oldest = now_ms
        self._total = 0.0
        self._emptied_at = now_ms + windows * window_ms
        self._paused_at = now_ms
        self._paused_ms = self._pauses = 0

    def charge(self, value: float, now_ms: float) -> int:
        """Counts `value` as used now. How long to pause, in milliseconds; 0 within the limit."""
        if now_ms >= self._ends:
            self._next_sample(now_ms)
        current = self._current
        self._values[current] += value
        self._lasts[current] = now_ms
        self._total += value
        if now_ms >= self._emptied_at:
            self._empty(now_ms)
        # Most charges are far below: what is used fits into the shortest time that it can be measured over.
        if self._total <= self.limit * self._least_s:
            return 0
        return self._pause_ms(now_ms)

    def take_back(self, value: float, now_ms: float) -> None:
        """What was charged does not happen after all."""
        self.charge(-value, now_ms)

    def rate(self, now_ms: float) -> float:
        """Use a second, as it is now."""
        if now_ms >= self._emptied_at:
            self._empty(now_ms)
        return self._total / (self._measured_ms(now_ms) / 1_000)

    def is_empty(self, now_ms: float) -> bool:
        """Whether nothing that it remembers counts any more: a new bucket would say the same."""
        return now_ms - self._lasts[self._current] >= self._windows * self._window_ms

    def note_pause(self, pause_ms: int, now_ms: float) -> None:
        """Somebody was made to pause because of this limit."""
        if now_ms - self._paused_at >= self._windows * self._window_ms:
            self._paused_ms = self._pauses = 0
        self._paused_at = now_ms
        self._paused_ms += pause_ms
        self._pauses += 1

    def pause_avg_ms(self, now_ms: float) -> float:
        """How long pauses are, of those that followed each other within all windows; 0 when there are none now."""
        if not self._pauses or now_ms - self._paused_at >= self._windows * self._window_ms:
            return 0.0
        return self._paused_ms / self._pauses

    def _pause_ms(self, now_ms: float) -> int:
        measured_ms = self._measured_ms(now_ms)
        rate = self._total / (measured_ms / 1_000)
        if rate <= self.limit:
            return 0
        # So much longer the same use would have had to take.
        return int((rate - self.limit) / self.limit * measured_ms + 0.5)

    def _measured_ms(self, now_ms: float) -> float:
        elapsed_ms = now_ms - self._oldest
        missing = self._windows - 1 - elapsed_ms // self._window_ms
        measured_ms = elapsed_ms + missing * self._window_ms if missing > 0 else elapsed_ms
        return max(measured_ms, self._window_ms)  # a single window may have begun this very moment

    def _next_sample(self, now_ms: float) -> None:
        """One sample more than windows are kept, so the one that is used again has been emptied or could be."""
        self._current = (self._current + 1) % (self._windows + 1)
        if self._current == len(self._starts):
            self._starts.append(now_ms)
            self._lasts.append(now_ms)
            self._values.append(0.0)
        else:
            self._reset(self._current, now_ms)
        self._ends = now_ms + self._window_ms
        self._look(now_ms)

    def _empty(self, now_ms: float) -> None:
        all_ms = self._windows * self._window_ms
        for sample, last in enumerate(self._lasts):
            if now_ms - last >= all_ms:
                self._reset(sample, now_ms)
        self._ends = self._starts[self._current] + self._window_ms
        self._look(now_ms)

    def _reset(self, sample: int, now_ms: float) -> None:
        self._starts[sample] = self._lasts[sample] = now_ms
        self._values[sample] = 0.0

    def _look(self, now_ms: float) -> None:
        self._oldest = min(self._starts)
        self._total = sum(self._values)
        self._emptied_at = min(self._lasts) + self._windows * self._window_ms
