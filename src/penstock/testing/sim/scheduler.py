"""Virtual time for many event loops: one queue of what is ready, one heap of what is due, in one fixed order.

Nothing here waits. When nothing is ready, time jumps to the next timer. Callbacks of a loop that was killed are
dropped; those of a loop that is paused are kept, in order, until it goes on.
"""

from __future__ import annotations

import asyncio
import asyncio.events as events
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from penstock.testing.sim.handle import uncaught

if TYPE_CHECKING:
    from penstock.testing.sim.loop import SimLoop

CALLBACKS_PER_INSTANT = 500
"""Code that waits by yielding would stop time for ever, so after this many callbacks a moment passes."""

MOMENT_S = 0.001
HEAP_SLACK = 1_000


class Scheduler:
    """Runs the callbacks of all loops of one world in an order that only the seed decides."""

    __slots__ = (
        "_count", "_heap", "_instant", "_ready", "_touched", "after_instant", "cancelled", "current", "now",
        "soon", "steps",
    )  # fmt: skip

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self.current: SimLoop | None = None
        self.after_instant: Callable[[list[SimLoop]], None] | None = None
        self.cancelled = 0  # timers in the heap that nobody wants any more
        self._ready: deque[Any] = deque()
        self.soon: Callable[[asyncio.Handle], None] = self._ready.append
        self._heap: list[tuple[float, int, Any]] = []
        self._count = 0
        self._instant = 0
        self._touched: dict[SimLoop, None] = {}

    def at(self, when: float, handle: asyncio.Handle) -> None:
        self._count += 1
        heappush(self._heap, (when, self._count, handle))
        if self.cancelled > HEAP_SLACK and self.cancelled * 2 > len(self._heap):
            self._sweep()

    def run(self, until: Callable[[], bool], *, deadline: float) -> bool:
        """True when `until()` holds at the end of an instant, False when virtual time has come to `deadline`."""
        outer = events._get_running_loop()
        try:
            while not until():
                if not self._advance(deadline):
                    return False
                self._run_ready()
                self.current = None  # whoever looks around now is nobody's process
                if self.after_instant is not None and self._touched:
                    touched = list(self._touched)
                    self._touched.clear()
                    self.after_instant(touched)
            return True
        finally:
            self.current = None
            events._set_running_loop(outer)

    def _advance(self, deadline: float) -> bool:
        """Makes everything ready that is due next; False when that lies beyond the deadline."""
        if self._ready:
            return True
        heap = self._heap
        while heap and heap[0][2]._cancelled:
            heappop(heap)
            self.cancelled -= 1
        if not heap or heap[0][0] > deadline:
            self.now = max(self.now, deadline)
            return False
        self._instant = 0
        due = heap[0][0]
        self._pass_to(due if due > self.now else self.now)
        return True

    def _pass_to(self, when: float) -> None:
        self.now = when
        heap, ready = self._heap, self._ready
        while heap and heap[0][0] <= when:
            handle = heappop(heap)[2]
            if handle._cancelled:
                self.cancelled -= 1
            else:
                handle._scheduled = False  # so that cancelling it from now on is not counted against the heap
                ready.append(handle)

    def _run_ready(self) -> None:
        ready, touched, instant = self._ready, self._touched, self._instant
        steps, current = self.steps - instant, self.current
        while ready:
            handle = ready.popleft()
            if handle._cancelled:
                continue
            loop: SimLoop = handle._loop
            if loop.halted:
                if not loop.dead:
                    loop.held.append(handle)
                continue
            if loop is not current:
                self.current = current = loop
                touched[loop] = None
                events._set_running_loop(loop)
            instant += 1
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as broken:
                uncaught(handle, broken)
            if instant >= CALLBACKS_PER_INSTANT:
                self.steps, self._instant = steps + instant, 0
                self._pass_to(self.now + MOMENT_S)
                return
        self.steps, self._instant = steps + instant, instant

    def _sweep(self) -> None:
        self._heap = [entry for entry in self._heap if not entry[2]._cancelled]
        heapify(self._heap)
        self.cancelled = 0
