"""Connections that have not said who they are yet: in their TLS handshake or their login.

They are counted apart from `max.connections`, so that a flood of them takes no place of a client that stands, and each
has a few seconds only.
"""

from __future__ import annotations

from typing import Final

STRANGERS_MAX: Final = 2_000
"""A handshake under way costs about 17 KB; a storm of reconnecting clients is served in turns."""
STRANGERS_PER_HOST_MAX: Final = 500


class Strangers:
    """How many there are at one listener, in all and by address."""

    __slots__ = ("_by_host", "_closed", "_most", "_most_per_host", "count", "refused")

    def __init__(self, most: int = STRANGERS_MAX, most_per_host: int = STRANGERS_PER_HOST_MAX) -> None:
        self._most, self._most_per_host = most, most_per_host
        self._by_host: dict[str, int] = {}
        self._closed = False
        self.count = 0
        self.refused = 0

    def close(self) -> None:
        """Nobody may come any more. A listener hears of whom it accepted last after it has closed."""
        self._closed = True

    def enter(self, host: str) -> bool:
        """Whether one more may come; who may has to `leave`."""
        if self._closed:
            return False
        if self.count >= self._most or self._by_host.get(host, 0) >= self._most_per_host:
            self.refused += 1
            return False
        self.count += 1
        self._by_host[host] = self._by_host.get(host, 0) + 1
        return True

    def leave(self, host: str) -> None:
        self.count -= 1
        left = self._by_host[host] - 1
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]
