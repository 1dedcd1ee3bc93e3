"""Deadlines by key, for a machine that is told the time instead of asking for it."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from penstock.model.ids import Millis

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """At most one deadline a key. Putting one off costs no heap work: a heartbeat is one dictionary store.

    The heap holds for every key an entry that is due no later than its deadline; an entry that comes up too early is
    put back at the real one.
    """

    __slots__ = ("_due", "_heap", "_order")

    def __init__(self) -> None:
        self._due: dict[K, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: K) -> bool:
        return key in self._due

    def set(self, key: K, at: int) -> None:
        """Sets or moves the deadline of `key`, in either direction."""
        known = self._due.get(key)
        if known is not None and known[1] <= at:
            self._due[key] = (at, known[1])
            return
        self._due[key] = (at, at)
        self._order += 1
        heapq.heappush(self._heap, (at, self._order, key))

    def cancel(self, key: K) -> None:
        self._due.pop(key, None)

    def next(self) -> Millis | None:
        """When to look again: no later than the first deadline, maybe earlier. None when nothing is set."""
        heap = self._heap
        while heap:
            at, _, key = heap[0]
            known = self._due.get(key)
            if known is not None and known[1] == at:
                return Millis(at)
            heapq.heappop(heap)
        return None

    def due(self, now: int) -> Iterator[K]:
        """Takes out, in order, every key whose deadline has come. Keys may be set and cancelled meanwhile."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, key = heapq.heappop(heap)
            known = self._due.get(key)
            if known is None or known[1] != at:
                continue
            if known[0] > now:
                self._due[key] = (known[0], known[0])
                self._order += 1
                heapq.heappush(heap, (known[0], self._order, key))
                continue
            del self._due[key]
            yield key
