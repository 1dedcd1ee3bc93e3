"""Long work on a loop, cut into slices, so that others get their turn. The one place that knows how long a slice is.

`Slices` is the measure itself, for loops that do something else between two of them; `in_slices` visits things,
`finished_in_slices` runs a generator to its end. `in_turns` counts steps instead of time, for those that have no clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, Protocol, TypeVar, cast

T = TypeVar("T")

SLICE_MS: Final = 5.0
"""Nobody notices that a request waited so long, and a turn of the loop costs a hundredth of it."""


class Ticking(Protocol):
    """What a slice is measured by: the clock of a node, or `LoopTime`."""

    def monotonic_ms(self) -> float: ...


class LoopTime:
    """The time of a loop, for those that were given no clock."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1_000


class Slices:
    """Begins with the first; whoever works asks `over` now and then, and breathes."""

    __slots__ = ("_now_ms", "_slice_ms", "_until_ms")

    def __init__(self, clock: Ticking, slice_ms: float = SLICE_MS) -> None:
        self._now_ms, self._slice_ms = clock.monotonic_ms, slice_ms
        self._until_ms = self._now_ms() + slice_ms

    @property
    def over(self) -> bool:
        return self._now_ms() >= self._until_ms

    async def breathe(self) -> None:
        """Lets others have the loop; the next slice begins when it comes back."""
        await asyncio.sleep(0)
        self._until_ms = self._now_ms() + self._slice_ms


async def in_slices(clock: Ticking, things: Iterable[T], visit: Callable[[T], object]) -> None:
    """Visits each of the things that there are now."""
    slices = Slices(clock)
    for thing in list(things):
        visit(thing)
        if slices.over:
            await slices.breathe()


async def finished_in_slices(clock: Ticking, work: Generator[None, None, T], slice_ms: float = SLICE_MS) -> T:
    """Runs `work` to its end; what it returned."""
    slices = Slices(clock, slice_ms)
    while True:
        try:
            next(work)
        except StopIteration as done:
            return cast(T, done.value)
        if slices.over:
            await slices.breathe()


async def in_turns(steps: Iterator[None], each: int, result: T) -> T:
    """Goes through the steps, `each` of them at a time; then the result, which they have made."""
    for done, _ in enumerate(steps, start=1):
        if done % each == 0:
            await asyncio.sleep(0)
    return result
