"""How fast a number that only rises has risen lately, for dashboards that ask for a rate. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
SPACING_S: Final = 5.0


class RecentRate:
    """Remembers what it was told when it was last asked; nothing happens in between.

    The rate is over the last minute, or over as long as it has been asked for.
    """

    __slots__ = ("_seen",)

    def __init__(self, now_s: float, total: float = 0.0) -> None:
        self._seen: deque[tuple[float, float]] = deque([(now_s, total)])

    def per_second(self, now_s: float, total: float) -> float:
        """`total` is the number as it is now."""
        seen = self._seen
        while len(seen) > 1 and seen[1][0] <= now_s - WINDOW_S:
            seen.popleft()
        since_s, before = seen[0]
        if now_s - seen[-1][0] >= SPACING_S:
            seen.append((now_s, total))
        return (total - before) / (now_s - since_s) if now_s > since_s else 0.0
