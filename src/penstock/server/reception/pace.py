"""How many connections a second are let in: `max.connection.creation.rate`, of the broker and of each listener.

Whoever comes too early waits like those who wait for a place, for a window at most; nobody is turned away for it. The
listener between brokers has a limit of its own only, so that clients cannot cut a broker off its cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.security.quotas.rate import RateBucket

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings

RATE: Final = "max.connection.creation.rate"
NO_LIMIT: Final = (1 << 31) - 1

_WHOLE_BROKER: Final = ""
_LOWEST: Final = 1e-6
"""A limit of 0 lets one in a window in."""


class Pace:
    """Times are milliseconds that never fall."""

    __slots__ = ("_buckets", "_closed_until", "_settings", "_window_ms", "_windows")

    def __init__(self, settings: BrokerSettings) -> None:
        """Limits are looked up whenever a connection comes: they may change."""
        self._settings = settings
        self._window_ms = settings.number("quota.window.size.seconds") * 1_000
        self._windows = settings.number("quota.window.num")
        self._buckets: dict[str, RateBucket] = {}
        self._closed_until: dict[str, float] = {}

    def lets_in(self, listener: str, now_ms: float) -> bool:
        """Whether the next connection of a listener may come now."""
        closed = self._closed_until
        if not closed:
            return True
        return all(closed.get(name, now_ms) <= now_ms for name in self._limits(listener))

    def came(self, listener: str, now_ms: float) -> None:
        """Counts a connection that was let in."""
        for name, limit in self._limits(listener).items():
            bucket = self._buckets.get(name)
            if bucket is None:
                bucket = self._buckets[name] = RateBucket(limit, now_ms, self._window_ms, self._windows)
            bucket.limit = limit
            pause_ms = min(bucket.charge(1, now_ms), self._window_ms)
            if pause_ms:
                self._closed_until[name] = now_ms + pause_ms
            else:
                self._closed_until.pop(name, None)

    def opens_in_ms(self, now_ms: float) -> float:
        """How long until somebody who waits may come, as far as it is known."""
        return max(0.0, min(self._closed_until.values(), default=now_ms) - now_ms)

    def _limits(self, listener: str) -> dict[str, float]:
        """What a connection of a listener counts against; nothing that has no limit."""
        settings = self._settings
        own = settings.for_listener(listener, RATE)
        assert isinstance(own, int), "a rate is a number"
        limits: dict[str, float] = {listener: own}
        if listener != settings.inter_broker_listener_name:
            limits[_WHOLE_BROKER] = settings.number(RATE)
        return {name: max(limit, _LOWEST) for name, limit in limits.items() if limit < NO_LIMIT}
