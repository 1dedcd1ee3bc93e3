"""Deadlines in seconds of an idle machine. Beside other load everything takes longer, and that is no failure.

A second in which n times the usual number of processes want the cores counts as 1/n of a second, so a deadline that was
chosen on an idle machine holds on a busy one, and what really hangs is still found. Where a deadline has to be said
beforehand (a subprocess, a foreign client), `within` stretches it by the load of that moment.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")
Seconds = TypeVar("Seconds", int, float)

CORES = os.cpu_count() or 1
# The processes of the suite with their nodes, clients and JVMs are what the deadlines were chosen for.
USUAL_LOAD_PER_CORE = 2.0
# A machine busier than this is out of order, and a hang must end some day.
FACTOR_MAX = 20.0

# Open for good: tests that leave no descriptor to anybody wait for conditions too.
_LOAD = os.open("/proc/loadavg", os.O_RDONLY)


class TimedOut(AssertionError):
    """A condition did not come true before its deadline."""


def factor() -> float:
    """How many times longer than usual things take at the moment; never less than 1."""
    minute, _, _, now, _ = os.pread(_LOAD, 100, 0).split()
    wanting = max(float(minute), float(now.split(b"/")[0]))
    return min(max(wanting / CORES / USUAL_LOAD_PER_CORE, 1.0), FACTOR_MAX)


def within(seconds: Seconds) -> Seconds:
    """A deadline for what has to be told it beforehand."""
    stretched = seconds * factor()
    return math.ceil(stretched) if isinstance(seconds, int) else stretched


def stretched(properties: Mapping[str, str], most: float) -> dict[str, str]:
    """Sessions and elections that a machine as busy as this one lets nodes keep, when nothing is done to them."""
    by = min(factor(), most)
    return {name: str(round(int(value) * by)) if name.endswith(".ms") else value for name, value in properties.items()}


class Patience:
    """A deadline that is looked at again and again, and moves away while the machine is busy."""

    # A look at the load costs a system call or three; it changes slowly.
    LOOK_S = 0.25

    def __init__(self, seconds: float) -> None:
        self._left_s = float(seconds)
        self._looked_at = time.monotonic()

    def over(self) -> bool:
        passed = time.monotonic() - self._looked_at
        if passed >= min(self.LOOK_S, self._left_s):
            self._looked_at += passed
            self._left_s -= passed / factor()
        return self._left_s <= 0

    @property
    def left_s(self) -> float:
        """As of the last look, in seconds of an idle machine: before these have passed it cannot be over."""
        return max(self._left_s, self.LOOK_S)


def wait_for(what: str, probe: Callable[[], T | None], *, timeout_s: float, pause_s: float = 0.02) -> T:
    """Calls `probe` until it returns something true, and returns that."""
    patience = Patience(timeout_s)
    while True:
        found = probe()
        if found:
            return found
        if patience.over():
            raise TimedOut(f"{what}: not within {timeout_s} s of an idle machine")
        time.sleep(pause_s)


@asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, with a deadline that moves away while the machine is busy."""
    loop, patience = asyncio.get_running_loop(), Patience(seconds)

    def look() -> None:
        nonlocal next_look
        if patience.over():
            bound.reschedule(loop.time())
        else:
            next_look = loop.call_later(patience.left_s, look)

    async with asyncio.timeout(None) as bound:
        next_look = loop.call_later(patience.left_s, look)
        try:
            yield
        finally:
            next_look.cancel()


async def until(
    condition: Callable[[], object],
    what: str | Callable[[], str] = "",
    *,
    timeout_s: float = 60,
    pause_s: float = 0.001,
) -> None:
    """Lets the loop go on until `condition` holds; `what` says what was waited for, as words or when asked."""
    patience = Patience(timeout_s)
    while not condition():
        if patience.over():
            words = what if isinstance(what, str) else what()
            raise TimedOut(f"{words or 'what was waited for'}: not within {timeout_s} s of an idle machine")
        await asyncio.sleep(pause_s)
