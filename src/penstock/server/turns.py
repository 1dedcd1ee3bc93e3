"""Long work bit by bit, so that others are heard in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from penstock.model.ports import Clock

T = TypeVar("T")


async def in_turns(steps: Iterator[None], each: int, result: T) -> T:
    """Goes through the steps, `each` of them at a time; then the result, which they have made."""
    for done, _ in enumerate(steps, start=1):
        if done % each == 0:
            await asyncio.sleep(0)
    return result


async def in_slices(clock: Clock, slice_ms: float, things: Iterable[T], visit: Callable[[T], object]) -> None:
    """Visits each of the things that there are now, for `slice_ms` at a time."""
    until = clock.monotonic_ms() + slice_ms
    for thing in list(things):
        visit(thing)
        if clock.monotonic_ms() >= until:
            await asyncio.sleep(0)
            until = clock.monotonic_ms() + slice_ms
