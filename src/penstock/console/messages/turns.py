"""How much is read at once: pages of records wait for their turn, and long work leaves others theirs."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from penstock.console.failures import Declined

READS_MAX: Final = 16
READS_OF_ONE_MAX: Final = 2
FOLLOWING_MAX: Final = 100
FOLLOWING_OF_ONE_MAX: Final = 10
"""Reads that wait for something to come."""
WAITING_MAX: Final = 64
WAITING_OF_ONE_MAX: Final = 8
WAIT_S: Final = 10.0
SLICE_S: Final = 0.005
"""A loop is held so long at most, and by one record more: with that it is ready again within 20 ms."""


class ReadingTurns:
    """So many of one person and so many in all are under way; some more wait for a moment, the rest is told to."""

    def __init__(self, of_one: int = READS_OF_ONE_MAX, in_all: int = READS_MAX) -> None:
        self._of_one, self._in_all = of_one, in_all
        self._under_way: Counter[str] = Counter()
        self._waiting: OrderedDict[asyncio.Future[None], str] = OrderedDict()

    @asynccontextmanager
    async def taken(self, person: str) -> AsyncIterator[None]:
        if self._free(person) and person not in self._waiting.values():
            self._under_way[person] += 1
        else:
            await self._wait(person)
        try:
            yield
        finally:
            self._under_way[person] -= 1
            if not self._under_way[person]:
                del self._under_way[person]
            self._wake()

    async def _wait(self, person: str) -> None:
        """Whoever wakes us has counted us."""
        of_one = sum(each == person for each in self._waiting.values())
        if of_one >= WAITING_OF_ONE_MAX or len(self._waiting) >= WAITING_MAX:
            raise _too_many()
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = person
        try:
            async with asyncio.timeout(WAIT_S):
                await turn
        except TimeoutError:
            if not _came(turn):
                raise _too_many() from None
        except asyncio.CancelledError:
            if _came(turn):
                self._under_way[person] -= 1
                self._wake()
            raise
        finally:
            self._waiting.pop(turn, None)

    def _wake(self) -> None:
        for turn, person in list(self._waiting.items()):
            if self._free(person) and not turn.done():
                self._under_way[person] += 1
                del self._waiting[turn]
                turn.set_result(None)

    def _free(self, person: str) -> bool:
        return self._under_way[person] < self._of_one and self._under_way.total() < self._in_all


def _came(turn: asyncio.Future[None]) -> bool:
    return turn.done() and not turn.cancelled()


def _too_many() -> Declined:
    return Declined(
        429, "too_many", "records are being read for you already", "try again when those are there", retry_after_s=5
    )


class Slices:
    """Lets others have the loop as often as this has had it for long; records differ too much to be counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()

    async def step(self) -> bool:
        """After each piece of work; whether others had the loop meanwhile."""
        if self._clock() - self._began < SLICE_S:
            return False
        await asyncio.sleep(0)
        self._began = self._clock()
        return True
