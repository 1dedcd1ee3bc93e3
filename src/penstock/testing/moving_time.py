"""Time that a test can move: a clock with an offset, and an event loop whose timers follow it.

The loop is uvloop, the one that a real node runs on; only what it says of time and its timers are ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

import uvloop

from penstock.model.ids import Millis
from penstock.server.loops.ports import SystemClock

Ts = TypeVarTuple("Ts")


class MovingClock(SystemClock):
    """The machine's clocks, ahead by what a test has moved them. Threads may read it at any time."""

    __slots__ = ("_watchers", "ahead_ms")

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._watchers: list[Callable[[], None]] = []

    def now_ms(self) -> Millis:
        return Millis(super().now_ms() + self.ahead_ms)

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.ahead_ms

    def when_jumped(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls back after every move, in the thread that moved it, until what it returns is called."""
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback) if callback in self._watchers else None

    def move(self, ms: int) -> None:
        self.ahead_ms += ms
        for callback in list(self._watchers):
            callback()


class MovingTimer(asyncio.TimerHandle):
    """A timer of a `MovingLoop`: it is set anew whenever time is moved."""

    __slots__ = ("_inner",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        loop: MovingLoop,
        context: Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self._inner: asyncio.Handle | None = None

    def set(self, inner: asyncio.Handle | None) -> None:
        if self._inner is not None:
            self._inner.cancel()
        self._inner = inner


class MovingLoop(uvloop.Loop):
    """A uvloop that can be told that time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_s = 0.0
        # In the order in which they were set, which is the order of timers that are due together.
        self._timers: dict[MovingTimer, None] = {}

    def time(self) -> float:
        now: float = super().time() + self._ahead_s
        return now

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = MovingTimer(when, callback, args, self, context)
        self._timers[timer] = None
        self._arm(timer)
        return timer

    def move(self, ms: int) -> None:
        """Lets `ms` pass at once. What falls due runs in the next rounds of the loop, earliest first."""
        self._ahead_s += ms / 1000
        for timer in sorted(self._timers, key=MovingTimer.when):
            self._arm(timer)

    @property
    def overdue(self) -> bool:
        """Whether a timer's time has come and it has not run yet."""
        now = self.time()
        return any(timer.when() <= now for timer in self._timers)

    def _arm(self, timer: MovingTimer) -> None:
        timer.set(super().call_later(max(0.0, timer.when() - self.time()), self._fire, timer))

    def _fire(self, timer: MovingTimer) -> None:
        self._timers.pop(timer, None)
        timer.set(None)
        if not timer.cancelled():
            timer._run()

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """Told by a handle that is cancelled, as asyncio's own loops are."""
        assert isinstance(timer, MovingTimer)
        self._timers.pop(timer, None)
        timer.set(None)
