"""Passwords are not guessed: whoever was wrong waits, and longer each time. Nobody is shut out by what others try.

What counts is an address, and a name from all addresses together; the second costs little time, or whoever knows a
name could keep its owner waiting. Tries that are under way count as wrong ones, so that many at once gain nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from penstock.console.failures import Declined

FREE: Final = 3
"""So many mistakes cost nothing."""
ADDRESS_WAITS_S: Final = 8.0
NAME_WAITS_S: Final = 2.0
REMEMBERED_S: Final = 300.0
REMEMBERED_OF_ONE: Final = 20
WATCHED_MAX: Final = 10_000
AT_ONCE_MAX: Final = 100
AT_ONCE_FROM_ONE_MAX: Final = 10


class Tries:
    """Who was wrong how often. `clock` and `sleep` are the loop's own, and a test's."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._under_way: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, address: str, name: str = "") -> AsyncIterator[None]:
        """Waits for as long as this try costs. A Declined with `wrong_login` that leaves the block is a mistake."""
        who = {f"from {address}": ADDRESS_WAITS_S} | ({f"as {name[:100]}": NAME_WAITS_S} if name else {})
        if self._under_way.total() >= AT_ONCE_MAX or self._under_way[f"from {address}"] >= AT_ONCE_FROM_ONE_MAX:
            raise Declined(
                429, "too_many", "too many logins are under way", "try again in some seconds", retry_after_s=5
            )
        wait_s = max(self._costs_s(each, longest) for each, longest in who.items())
        self._under_way.update(who.keys())
        try:
            if wait_s > 0:
                await self._sleep(wait_s)
            yield
        except Declined as why:
            if why.code == "wrong_login":
                for each in who:
                    self._was_wrong(each)
            raise
        finally:
            self._under_way.subtract(who.keys())
            self._under_way += Counter()

    def _costs_s(self, who: str, longest_s: float) -> float:
        wrong = self._wrong.get(who, deque())
        while wrong and self._clock() - wrong[0] > REMEMBERED_S:
            wrong.popleft()
        times = len(wrong) + self._under_way[who] - FREE
        return min(2.0**times, longest_s) if times >= 0 else 0.0

    def _was_wrong(self, who: str) -> None:
        self._wrong.setdefault(who, deque(maxlen=REMEMBERED_OF_ONE)).append(self._clock())
        self._wrong.move_to_end(who)
        while len(self._wrong) > WATCHED_MAX:
            self._wrong.popitem(last=False)
