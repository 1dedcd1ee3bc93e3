"""Which part of a picture is due. Pure: time and what a look cost come in with the call.

Each part has a period; one that costs much processor time is looked at less often, so that all of them together stay
below a share of one core whatever the size of the cluster. When nobody has asked for anything for ten minutes all
periods become a minute: history goes on, and brokers are left in peace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.console.sampler.picture import GROUPS, HEALTH, LOG_DIRS, METADATA, OFFSETS, PARTS, SETTINGS

PERIODS_MS: Final = {
    METADATA: 5_000,
    OFFSETS: 10_000,
    GROUPS: 10_000,
    LOG_DIRS: 60_000,
    SETTINGS: 120_000,
    HEALTH: 10_000,
}
COST_TIMES: Final = 150
"""A part is looked at no sooner than after so many times what it cost: six parts take 4 % of a core at most."""
IDLE_AFTER_MS: Final = 600_000
IDLE_PERIOD_MS: Final = 60_000


class Schedule:
    """When each part was looked at, what it cost, and when it is due again."""

    def __init__(self, every_ms: int = PERIODS_MS[METADATA]) -> None:
        self._pace = every_ms / PERIODS_MS[METADATA]
        self._next_ms = dict.fromkeys(PARTS, 0.0)
        self._cost_ms = dict.fromkeys(PARTS, 0.0)

    def due(self, now_ms: float) -> list[str]:
        """The parts whose time has come, in the order in which they build on each other."""
        return [part for part in PARTS if self._next_ms[part] <= now_ms]

    def wait_ms(self, now_ms: float) -> float:
        """Until the next part is due."""
        return max(min(self._next_ms.values()) - now_ms, 0.0)

    def looked(self, part: str, now_ms: float, cost_ms: float, idle_ms: float) -> None:
        """A look is over. The cost is averaged, because the first look of a process compiles what reads it."""
        known = self._cost_ms[part]
        self._cost_ms[part] = cost_ms if not known else (known + cost_ms) / 2
        period = max(PERIODS_MS[part] * self._pace, COST_TIMES * min(self._cost_ms[part], cost_ms))
        if idle_ms > IDLE_AFTER_MS:
            period = max(period, IDLE_PERIOD_MS)
        self._next_ms[part] = now_ms + period

    def soon(self, parts: Iterable[str], now_ms: float) -> None:
        """Somebody has changed something, or has come back: these parts are due now."""
        for part in parts:
            self._next_ms[part] = min(self._next_ms[part], now_ms)
