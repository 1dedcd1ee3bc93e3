"""What is counted about requests: plain integers, one object per API, read at scrape."""

from __future__ import annotations

from penstock.server.loops.timing import Timing


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
