"""How fast moves between log directories may copy: `replica.alter.log.dirs.io.max.bytes.per.second`."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.model.ports import Clock

LOOK_AGAIN_MS: Final = 1_000.0
GRAIN_MS: Final = 1.0
"""Shorter waits are put on the bill: no timer is that exact."""


class Pace:
    """A debt in bytes that is paid off at the rate in force; whoever wants to copy waits until there is none.

    The rate is read at every look, so a change counts at once, also for somebody who waits.
    """

    __slots__ = ("_clock", "_looked_at_ms", "_owed_bytes", "_rate")

    def __init__(self, clock: Clock, bytes_per_second: Callable[[], int]) -> None:
        self._clock, self._rate = clock, bytes_per_second
        self._owed_bytes = 0.0
        self._looked_at_ms = clock.monotonic_ms()

    async def take(self, size: int) -> None:
        """Returns when `size` bytes may be copied. A rate of 0 stops everything until it is raised."""
        while (wait_ms := self._wait_ms()) > 0:
            await sleep(wait_ms / 1_000)
        self._owed_bytes += size

    def _wait_ms(self) -> float:
        now, rate = self._clock.monotonic_ms(), self._rate()
        self._owed_bytes = max(0.0, self._owed_bytes - (now - self._looked_at_ms) * rate / 1_000)
        self._looked_at_ms = now
        if rate == 0:
            return LOOK_AGAIN_MS
        wait_ms = self._owed_bytes * 1_000 / rate
        return min(wait_ms, LOOK_AGAIN_MS) if wait_ms >= GRAIN_MS else 0.0
