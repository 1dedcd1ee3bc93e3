"""What was deleted and keeps its bytes for a while, because a reader may still hold a span of it: files of segments
under names that end in `.deleted`, and directories of logs under names that end in `-delete`.

The delay goes by a clock that only measures: the time of day may be set back, and what was due by it would stay.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Doomed(Generic[T]):
    """Things by the time from which they may be removed. Whoever dooms one need not know the time: the first look at
    the clock after that sets it."""

    __slots__ = ("_count", "_unseen", "_waiting")

    def __init__(self) -> None:
        self._unseen: list[tuple[int, T]] = []
        # A heap; the number keeps the order of those that are due together.
        self._waiting: list[tuple[float, int, T]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._unseen) + len(self._waiting)

    def add(self, doomed: T, delay_ms: int) -> None:
        self._unseen.append((delay_ms, doomed))

    def take_due(self, monotonic_ms: float) -> list[T]:
        """Those whose delay is over, handed out once."""
        for delay_ms, doomed in self._unseen:
            self._count += 1
            heappush(self._waiting, (monotonic_ms + delay_ms, self._count, doomed))
        self._unseen.clear()
        due: list[T] = []
        while self._waiting and self._waiting[0][0] <= monotonic_ms:
            due.append(heappop(self._waiting)[2])
        return due

    def rename(self, renamed: Callable[[T], T]) -> None:
        """What they are in has another name now."""
        self._unseen = [(delay_ms, renamed(doomed)) for delay_ms, doomed in self._unseen]
        self._waiting = [(due_ms, number, renamed(doomed)) for due_ms, number, doomed in self._waiting]
        heapify(self._waiting)
