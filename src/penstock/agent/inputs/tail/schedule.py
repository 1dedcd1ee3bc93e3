"""Who is looked at when, and whose turn it is to be read. Pure: the time comes in.

A file that changed is looked at again soon, a quiet one more and more rarely. Looks are due in ticks, so that thousands
of quiet files wake the loop a few times a second. Files with something to read take turns; a turn is a number of bytes.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class Watched(Protocol):
    """What the schedule keeps on each file."""

    interval_ms: float
    """Until it is looked at again."""
    ticket: int
    """Its place on the schedule; 0 takes it off."""
    queued: bool
    """Whether it waits for its turn."""


File = TypeVar("File", bound=Watched)


class Looks(Generic[File]):
    """When each file is looked at."""

    def __init__(self, interval_min_ms: float, interval_max_ms: float) -> None:
        self._min, self._max = interval_min_ms, interval_max_ms
        self._heap: list[tuple[float, int, File]] = []
        self._number = 0

    def add(self, file: File, now_ms: float) -> None:
        file.interval_ms = self._min
        self._push(file, now_ms)

    def due(self, now_ms: float) -> Iterator[File]:
        """Those to look at now; each must be given back with `looked`."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, ticket, file = heapq.heappop(self._heap)
            if file.ticket == ticket:
                yield file

    def looked(self, file: File, now_ms: float, *, changed: bool) -> None:
        if not file.ticket:
            # Looking at it showed that there is nothing to look at any more.
            return
        file.interval_ms = self._min if changed else min(self._max, file.interval_ms * 2)
        self._push(file, now_ms + file.interval_ms)

    def next_ms(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def _push(self, file: File, at_ms: float) -> None:
        self._number += 1
        file.ticket = self._number
        heapq.heappush(self._heap, (math.ceil(at_ms / self._min) * self._min, self._number, file))


class Turns(Generic[File]):
    """Whose turn it is: first come, first served, and back to the end of the queue."""

    def __init__(self) -> None:
        self._queue: deque[File] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def want(self, file: File, *, first: bool = False) -> None:
        """Has something to read. Once in the queue is enough."""
        if file.queued:
            return
        file.queued = True
        if first:
            self._queue.appendleft(file)
        else:
            self._queue.append(file)

    def next(self) -> File | None:
        if not self._queue:
            return None
        file = self._queue.popleft()
        file.queued = False
        return file

    def __iter__(self) -> Iterator[File]:
        return iter(self._queue)
