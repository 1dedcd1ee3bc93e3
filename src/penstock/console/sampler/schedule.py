"""Which part of a picture is due. Pure: time and what a look cost come in with the call.

Each part has a period; one that costs much processor time is looked at less often, so that all of them together stay
below a share of one core whatever the size of the cluster. Whoever changes something would like to see it at once:
that is paid from a small credit, and when it is used up a change is seen when its part is due anyway. When nobody has
asked for anything for ten minutes all periods become a minute: history goes on, and brokers are left in peace.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from penstock.console.sampler.picture import GROUPS, HEALTH, LOG_DIRS, METADATA, OFFSETS, PARTS, SETTINGS, STARTS

PERIODS_MS: Final = {
    METADATA: 5_000,
    GROUPS: 10_000,
    OFFSETS: 10_000,
    STARTS: 30_000,
    LOG_DIRS: 60_000,
    SETTINGS: 120_000,
    HEALTH: 10_000,
}
COST_TIMES: Final = {
    METADATA: 150,
    GROUPS: 70,
    OFFSETS: 100,
    STARTS: 300,
    LOG_DIRS: 300,
    SETTINGS: 600,
    HEALTH: 200,
}
"""A part is looked at no sooner than after so many times what it cost: all of them take 4.4 % of a core at most."""
FIRST_PERIOD_MS: Final = 30_000
"""After its first look, which compiles what reads it and costs more than any other, a part waits no longer for that."""
EARLY_SHARE: Final = 0.005
EARLY_MS_MAX: Final = 500.0
"""Looks that come early because something was changed take such a share of a core, and so much of it at once."""
GAP_MS: Final = 1_000.0
"""However little a look costs this side, brokers are asked no more often."""
IDLE_AFTER_MS: Final = 600_000
IDLE_PERIOD_MS: Final = 60_000


class Schedule:
    """When each part was looked at, what it cost, and when it is due again."""

    def __init__(self, every_ms: int = PERIODS_MS[METADATA]) -> None:
        self._pace = every_ms / PERIODS_MS[METADATA]
        self._next_ms = dict.fromkeys(PARTS, 0.0)
        self._looked_ms = dict.fromkeys(PARTS, -inf)
        self._cost_ms = dict.fromkeys(PARTS, 0.0)
        self._credit_ms, self._credited_ms = EARLY_MS_MAX, 0.0

    def next_due(self, now_ms: float, after: str | None = None) -> str | None:
        """The first part behind `after` whose time has come, in the order in which parts build on each other."""
        rest = PARTS if after is None else PARTS[PARTS.index(after) + 1 :]
        return next((part for part in rest if self._next_ms[part] <= now_ms), None)

    def wait_ms(self, now_ms: float) -> float:
        """Until the next part is due."""
        return max(min(self._next_ms.values()) - now_ms, 0.0)

    def looked(self, part: str, now_ms: float, cost_ms: float, idle_ms: float) -> None:
        """A look is over."""
        paid_ms = COST_TIMES[part] * cost_ms
        if self._looked_ms[part] == -inf:
            paid_ms = min(paid_ms, FIRST_PERIOD_MS)
        self._cost_ms[part] = cost_ms
        self._settle(part, now_ms, paid_ms, idle_ms)

    def taken_along(self, part: str, now_ms: float, idle_ms: float) -> None:
        """A part was looked at together with another one, which paid for it."""
        self._settle(part, now_ms, COST_TIMES[part] * self._cost_ms[part], idle_ms)

    def soon(self, parts: Iterable[str], now_ms: float) -> None:
        """Somebody has changed something, or has come back: these parts are due now, as far as that can be paid."""
        for part in parts:
            cost_ms, looked_ms = self._cost_ms[part], self._looked_ms[part]
            early_ms = max(now_ms, looked_ms + GAP_MS * self._pace)
            if self._next_ms[part] <= early_ms:
                continue
            if looked_ms + COST_TIMES[part] * cost_ms > early_ms and not self._spend(cost_ms, now_ms):
                early_ms = looked_ms + COST_TIMES[part] * cost_ms
            self._next_ms[part] = min(self._next_ms[part], early_ms)

    def _settle(self, part: str, now_ms: float, paid_ms: float, idle_ms: float) -> None:
        period_ms = max(PERIODS_MS[part] * self._pace, paid_ms)
        if idle_ms > IDLE_AFTER_MS:
            period_ms = max(period_ms, IDLE_PERIOD_MS)
        self._looked_ms[part], self._next_ms[part] = now_ms, now_ms + period_ms

    def _spend(self, cost_ms: float, now_ms: float) -> bool:
        grown_ms = self._credit_ms + EARLY_SHARE * (now_ms - self._credited_ms)
        self._credit_ms, self._credited_ms = min(grown_ms, EARLY_MS_MAX), now_ms
        if self._credit_ms < cost_ms:
            return False
        self._credit_ms -= cost_ms
        return True
