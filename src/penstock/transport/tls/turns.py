"""Handshakes by turns: a thousand clients that come at once must not hold the loop for a second."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Protocol

STEPS_PER_TURN = 4
"""A step is a signature or a check of one: half a millisecond with ECDSA, five with the largest RSA keys in use."""


class Shaker(Protocol):
    """A connection in its handshake."""

    def take_step(self) -> None: ...


class HandshakeTurns:
    """Lets a few steps of handshakes run in each turn of a loop, the others in the order in which they came."""

    __slots__ = ("_left", "_loop", "_turning", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left = STEPS_PER_TURN
        self._turning = False
        self._waiting: dict[Shaker, None] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def ask(self, shaker: Shaker) -> bool:
        """Calls `shaker.take_step` at once if this turn has room; else False, and it is called in a later one."""
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)
        if self._left and not self._waiting:
            self._left -= 1
            shaker.take_step()
            return True
        self._waiting[shaker] = None
        return False

    def forget(self, shaker: Shaker) -> None:
        self._waiting.pop(shaker, None)

    def _turn(self) -> None:
        # Sockets are looked at between two of these, so steps that clients ask for come on top of those that waited.
        ready = list(islice(self._waiting, STEPS_PER_TURN))
        self._left = STEPS_PER_TURN - len(ready)
        self._turning = bool(ready)
        if self._turning:
            self._loop.call_soon(self._turn)
        for shaker in ready:
            # One of them may have ended another.
            if shaker in self._waiting:
                del self._waiting[shaker]
                shaker.take_step()
