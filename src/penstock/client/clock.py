"""The client's time: the machine's clock, or one that a test moves."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.model.ids import Millis
from penstock.model.ports import Clock


class SystemClock:
    """Wall and monotonic time of this machine."""

    __slots__ = ()

    def now_ms(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000


SYSTEM_CLOCK = SystemClock()


def on_jump(clock: Clock, callback: Callable[[], None]) -> None:
    """Calls back when a test moves `clock`, from whatever thread moves it; clocks that only run are left alone."""
    subscribe = getattr(clock, "when_jumped", None)
    if subscribe is not None:
        subscribe(callback)
