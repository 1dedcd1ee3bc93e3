"""What is counted about requests: plain integers, one object per API, read at scrape."""

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


class ApiMetrics:
    """The phases of one API's requests.

    `queued` is the time behind other requests of the same connection, `total` runs from the last byte of the request
    to the reply's way out, waits included.
    """

    __slots__ = ("errors", "key", "name", "queued_ms", "request_bytes", "response_bytes", "total", "unexpected")

    def __init__(self, key: int, name: str) -> None:
        self.key = key
        self.name = name
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors = 0  # replies whose own error code is not 0
        self.unexpected = 0  # exceptions that nobody foresaw
        self.queued_ms = 0.0
        self.total = Timing()

    def add(self, other: ApiMetrics) -> None:
        """Counts what another listener has served."""
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.errors += other.errors
        self.unexpected += other.unexpected
        self.queued_ms += other.queued_ms
        self.total.add(other.total)
