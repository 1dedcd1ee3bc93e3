"""Work of the coordinator that nobody waits for on the spot, a few milliseconds at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.server.loops.slices import Slices

if TYPE_CHECKING:
    from penstock.model.ports import Clock


class Chores:
    """Runs iterators to their end, one after the other, in slices. Each step of one must be short."""

    __slots__ = ("_clock", "_log", "_queue", "_scheduled")

    def __init__(self, clock: Clock, log: logging.Logger) -> None:
        self._clock, self._log = clock, log
        self._queue: deque[Iterator[None]] = deque()
        self._scheduled: asyncio.Handle | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, chore: Iterator[None]) -> None:
        """Begins at the loop's next turn."""
        self._queue.append(chore)
        self._schedule()

    def clear(self) -> None:
        self._queue.clear()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _schedule(self) -> None:
        if self._scheduled is None and self._queue:
            self._scheduled = asyncio.get_running_loop().call_soon(self._slice)

    def _slice(self) -> None:
        self._scheduled = None
        slices = Slices(self._clock)
        queue = self._queue
        while queue and not slices.over:
            chore = queue.popleft()
            try:
                next(chore)
            except StopIteration:
                continue
            except Exception:
                self._log.exception("work of the coordinator failed")
                continue
            queue.appendleft(chore)
        self._schedule()
