"""Closing connections that nobody uses, without a timer per connection or per request."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.transport.intake import Intake

_TICKS_PER_IDLE = 32
_TICK_S_MIN = 0.02


class Idler(Protocol):
    """A connection as the wheel sees it. `touched` is the tick of its last sign of life."""

    touched: int
    idle_slot: int

    def idle(self) -> bool:
        """Told when nothing was heard for the whole idle time; False when it has a reason to stay."""


class IdleWheel:
    """Buckets of connections by the tick at which they would expire if they stayed silent.

    A sign of life only stores the current tick on the connection. When a bucket falls due, those who were heard of
    since move on to a later one, so each connection is looked at about once per idle time.
    """

    __slots__ = ("_buckets", "_endless", "_intake", "_loop", "_span", "_tick_s", "_timer", "expired")

    def __init__(self, loop: asyncio.AbstractEventLoop, intake: Intake, idle_ms: float) -> None:
        """A negative `idle_ms` lets everybody stay for ever."""
        self._loop = loop
        self._intake = intake
        self._endless = idle_ms < 0
        self._tick_s = max(idle_ms / 1000 / _TICKS_PER_IDLE, _TICK_S_MIN)
        self._span = max(1, round(idle_ms / 1000 / self._tick_s)) + 1
        self._buckets: dict[int, set[Idler]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.expired = 0

    def start(self) -> None:
        if not self._endless:
            self._timer = self._loop.call_later(self._tick_s, self._turn)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def add(self, stream: Idler) -> None:
        stream.touched = self._intake.tick
        if not self._endless:
            self._place(stream)

    def discard(self, stream: Idler) -> None:
        bucket = self._buckets.get(stream.idle_slot)
        if bucket is not None:
            bucket.discard(stream)

    def _place(self, stream: Idler) -> None:
        slot = max(stream.touched + self._span, self._intake.tick + 1)
        stream.idle_slot = slot
        self._buckets.setdefault(slot, set()).add(stream)

    def _turn(self) -> None:
        self._timer = self._loop.call_later(self._tick_s, self._turn)
        self._intake.tick += 1
        now = self._intake.tick
        for stream in self._buckets.pop(now, ()):
            if stream.touched + self._span > now:
                self._place(stream)
            elif stream.idle():
                self.expired += 1
            else:
                stream.touched = now
                self._place(stream)
