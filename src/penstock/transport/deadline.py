"""Timers that do not mistake our own stall for somebody else's silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.model.ports import Clock

LATE_MS = 20.0
HAIR_MS = 0.001


class Deadline:
    """One timer that can be moved. When it fires late, what has arrived meanwhile is heard first.

    After a stall of the loop the timer is due and the heartbeat that would have moved it lies unread in the socket.
    Acting at once would call an election against a leader who is well.
    """

    __slots__ = ("_at_ms", "_callback", "_clock", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._clock = clock
        self._callback = callback
        self._at_ms = 0.0
        self._handle: asyncio.Handle | None = None

    def set(self, at_ms: float) -> None:
        """Calls back once at `at_ms` of the monotonic clock, in place of any earlier setting."""
        self.cancel()
        self._at_ms = at_ms
        delay_ms = max(at_ms - self._clock.monotonic_ms(), 0.0)
        self._handle = self._loop.call_later(delay_ms / 1000, self._due)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _due(self) -> None:
        late_ms = self._clock.monotonic_ms() - self._at_ms
        if -HAIR_MS < late_ms < 0:
            # The loop counts in seconds and rounds; whoever is called must not find by the clock that it is too early.
            self._handle = self._loop.call_later(HAIR_MS / 1000, self._due)
        elif late_ms <= LATE_MS:
            self._fire()
        else:
            self._handle = self._loop.call_soon(self._hop)

    def _hop(self) -> None:
        # uvloop runs what is called soon before it looks at the sockets; only the second round comes after them.
        self._handle = self._loop.call_soon(self._fire)

    def _fire(self) -> None:
        self._handle = None
        self._callback()
