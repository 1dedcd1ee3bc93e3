"""Tokens that refill at the rate of a limit: what changes to partitions cost, at the controller."""

from __future__ import annotations

from typing import Final

from penstock.model.errors import THROTTLING_QUOTA_EXCEEDED, Refused
from penstock.security.quotas.rate import WINDOW_MS, WINDOWS


class TokenBucket:
    """Starts full, with what refills in all windows together. Tokens may be owed: a change is made whole or refused.

    Kafka's strict mode refuses changes while tokens are owed; its permissive mode makes them and tells the pause.
    """

    __slots__ = ("_at_ms", "_capacity_s", "_tokens", "kept", "limit")

    def __init__(self, limit: float, now_ms: float, window_ms: int = WINDOW_MS, windows: int = WINDOWS) -> None:
        """`limit` is tokens a second; it may be changed at any time."""
        self.limit = limit
        self.kept = True
        self._capacity_s = windows * window_ms / 1_000
        self._tokens = limit * self._capacity_s
        self._at_ms = now_ms

    def tokens(self, now_ms: float) -> float:
        """What is there now; less than nothing is owed."""
        refilled = self._tokens + self.limit * ((now_ms - self._at_ms) / 1_000)
        self._tokens = min(self.limit * self._capacity_s, refilled)
        self._at_ms = now_ms
        return self._tokens

    def pause_ms(self, now_ms: float) -> int:
        """How long to wait until nothing is owed; 0 when nothing is."""
        tokens = self.tokens(now_ms)
        return int(-tokens / self.limit * 1_000 + 0.5) if tokens < 0 else 0

    def try_take(self, count: float, now_ms: float) -> bool:
        """Takes tokens unless some are owed already, however few; whether they were taken."""
        if self.tokens(now_ms) < 0:
            return False
        self._take(count)
        return True

    def charge(self, count: float, now_ms: float) -> int:
        """Takes tokens in any case; the pause that follows."""
        self.tokens(now_ms)
        self._take(count)
        return self.pause_ms(now_ms)

    def is_empty(self, now_ms: float) -> bool:
        """Whether it is full, so that a new bucket would say the same."""
        return self.tokens(now_ms) >= self.limit * self._capacity_s

    def _take(self, count: float) -> None:
        self._tokens = min(self.limit * self._capacity_s, self._tokens - count)


MUTATIONS_IN_STRICT: Final = {19: 6, 20: 5, 37: 3}
"""From which version on CreateTopics, DeleteTopics and CreatePartitions are refused rather than paused afterwards."""


class Mutations:
    """What one request may still change. Topics are charged one by one: some of a request may be made, others refused.

    `throttle_ms` is what its reply tells: how long to wait before what was refused is worth another try, or, in
    versions that know no refusal, how long to pause.
    """

    __slots__ = ("_bucket", "_now_ms", "_strict", "throttle_ms")

    def __init__(self, bucket: TokenBucket | None, now_ms: float, *, strict: bool) -> None:
        """Without a bucket nothing is limited."""
        self._bucket, self._now_ms, self._strict = bucket, now_ms, strict
        self.throttle_ms = 0

    def take(self, partitions: int) -> None:
        """Charges a topic of which so many partitions are made or deleted; Refused when that must not happen now."""
        bucket = self._bucket
        if bucket is None:
            return
        if not self._strict:
            self.throttle_ms = bucket.charge(partitions, self._now_ms)
            return
        if not bucket.try_take(partitions, self._now_ms):
            self.throttle_ms = max(self.throttle_ms, bucket.pause_ms(self._now_ms))
            raise Refused(THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")


FREE: Final = Mutations(None, 0.0, strict=False)
"""Nothing is limited."""
