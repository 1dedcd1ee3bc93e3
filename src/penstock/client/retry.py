"""How long to wait before trying again: twice as long each time up to a limit, a fifth more or less by chance."""

from __future__ import annotations

import random
from collections.abc import Callable

JITTER = 0.2
_DOUBLINGS_MAX = 30


class Backoff:
    """Delays in milliseconds. Without the jitter, a thousand clients that lost one broker come back as one wave."""

    __slots__ = ("_chance", "first_ms", "limit_ms")

    def __init__(self, first_ms: float, limit_ms: float, chance: Callable[[], float] = random.random) -> None:
        """`chance` gives numbers from 0 up to 1."""
        self.first_ms, self.limit_ms, self._chance = first_ms, max(first_ms, limit_ms), chance

    def delay_ms(self, failures: int) -> float:
        """The wait after `failures` failures in a row, the first being 1."""
        grown = min(self.first_ms * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS_MAX), self.limit_ms)
        return grown * (1 - JITTER + 2 * JITTER * self._chance())
