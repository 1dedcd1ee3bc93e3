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
        self._ticks: list[int] = []
        """A heap of those that have files."""
        self._files: dict[int, list[tuple[int, File]]] = {}
        """With the ticket that each had when it was put here: one that was taken off meanwhile has another."""
        self._tickets = 0

    def add(self, file: File, now_ms: float) -> None:
        file.interval_ms = self._min
        self._tickets = file.ticket = self._tickets + 1
        self._at(now_ms).append((file.ticket, file))

    def due(self, now_ms: float) -> list[File]:
        """Those to look at now. They are off the schedule until they are given back with `looked` or `all_quiet`."""
        now, found = now_ms / self._min, list[File]()
        while self._ticks and self._ticks[0] <= now:
            entries = self._files.pop(heapq.heappop(self._ticks))
            found += [file for ticket, file in entries if file.ticket == ticket]
        return found

    def looked(self, file: File, now_ms: float, *, changed: bool) -> None:
        if not file.ticket:
            # Looking at it showed that there is nothing to look at any more.
            return
        file.interval_ms = self._min if changed else min(self._max, file.interval_ms * 2)
        self._at(now_ms + file.interval_ms).append((file.ticket, file))

    def all_quiet(self, files: list[File], now_ms: float) -> None:
        """Many at once that did not change."""
        longest = self._max
        at_longest = [(file.ticket, file) for file in files if file.interval_ms == longest]
        if len(at_longest) < len(files):
            for file in [file for file in files if file.interval_ms != longest]:
                self.looked(file, now_ms, changed=False)
        if at_longest:
            self._at(now_ms + longest).extend(at_longest)

    def next_ms(self) -> float | None:
        return self._ticks[0] * self._min if self._ticks else None

    def _at(self, at_ms: float) -> list[tuple[int, File]]:
        tick = math.ceil(at_ms / self._min)
        files = self._files.get(tick)
        if files is None:
            self._files[tick] = files = []
            heapq.heappush(self._ticks, tick)
        return files


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
