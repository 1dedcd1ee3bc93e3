"""What waits to be sent to one tab of a browser. It has a bound; a tab that does not take it is let go."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from penstock.console.answers import encode

QUEUED_BYTES_MAX: Final = 2 << 20
STALLED_AFTER_S: Final = 30.0
BEAT_S: Final = 15.0


class BrowserTab:
    """Events in the order in which they happened. What says only that something is new replaces what said so before."""

    def __init__(
        self, name: str, owner: str, person: str = "", left: Callable[[BrowserTab], None] | None = None
    ) -> None:
        """`left` is told when nothing comes any more: whatever works for this tab works for nobody then."""
        self.name, self.owner, self.person, self._left = name, owner, person, left
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._newest: dict[str, tuple[str, Any]] = {}
        self._bytes = 0
        self._wake = asyncio.Event()
        self._taken_at = time.monotonic()
        self.ended = False

    @property
    def over(self) -> bool:
        """Whether everything was taken that will ever come."""
        return self.ended and not self._waiting

    def put(self, event: str, data: object) -> None:
        """Queues an event; too much of it, or none taken for long, ends the tab."""
        if self.ended:
            return
        encoded = encode(data)
        self._bytes += len(encoded)
        late = bool(self._waiting) and time.monotonic() - self._taken_at > STALLED_AFTER_S
        if self._bytes > QUEUED_BYTES_MAX or late:
            self.end("stalled", "this tab did not take what it was sent; it may come again")
            return
        self._waiting.append((event, encoded))
        self._wake.set()

    def put_newest(self, key: str, event: str, data: object) -> None:
        """Queues what is sent only in its newest state."""
        self._newest[key] = (event, data)
        self._wake.set()

    def end(self, code: str, message: str) -> None:
        """Nothing comes after this."""
        if not self.ended:
            self.ended = True
            self._waiting.clear()
            self._newest.clear()
            self._waiting.append(("bye", encode({"code": code, "message": message})))
            self._wake.set()
            if self._left is not None:
                self._left(self)

    async def take(self) -> bytes:
        """Waits for events and gives all there are, as they go over the wire; a beat when there are none for long."""
        if not self._waiting and not self._newest:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), BEAT_S)
            except TimeoutError:
                return framed("beat", encode({"at_ms": time.time_ns() // 1_000_000}))
        self._taken_at = time.monotonic()
        parts = [framed(event, data) for event, data in self._waiting]
        parts += [framed(event, encode(data)) for event, data in self._newest.values()]
        self._waiting.clear()
        self._newest.clear()
        self._bytes = 0
        return b"".join(parts)


def framed(event: str, data: bytes) -> bytes:
    """JSON has no line breaks of its own, so it is one line of the stream."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), data)
