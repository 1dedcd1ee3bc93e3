"""How long something took, as a histogram: of requests, and of the delays of a loop."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_MS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0, 30_000.0)


class Timing:
    """A histogram of milliseconds with fixed bounds, each about twice the one before."""

    __slots__ = ("buckets", "count", "max_ms", "sum_ms")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_MS) + 1)
        self.count = 0
        self.sum_ms = 0.0
        self.max_ms = 0.0

    def observe(self, duration_ms: float) -> None:
        self.buckets[bisect_left(BOUNDS_MS, duration_ms)] += 1
        self.count += 1
        self.sum_ms += duration_ms
        if duration_ms > self.max_ms:
            self.max_ms = duration_ms

    def add(self, other: Timing) -> None:
        """Counts what another has observed."""
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]
        self.count += other.count
        self.sum_ms += other.sum_ms
        self.max_ms = max(self.max_ms, other.max_ms)

    def quantile(self, share: float) -> float:
        """The bound below which `share` of all observations lie; the largest one seen beyond the last bound."""
        if not self.count:
            return 0.0
        seen, wanted = 0, share * self.count
        for count, bound in zip(self.buckets, BOUNDS_MS, strict=False):
            seen += count
            if seen >= wanted:
                return min(bound, self.max_ms)
        return self.max_ms
