"""A bounded queue of audit lines, and the one task that empties it batch by batch.

Whoever puts a line in never waits. A line that finds no room, and a batch that cannot be delivered, is dropped and
counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.model.errors import PenstockError
from penstock.server.loops.duty import duty

if TYPE_CHECKING:
    from penstock.server.logs import Sparing

QUEUED_BYTES_MAX: Final = 4 << 20
BATCH_BYTES_MAX: Final = 256 << 10
CLOSE_WITHIN_S: Final = 1.0

QUEUE, WRITE = "queue", "write"


class Line(NamedTuple):
    """One event as it is told: JSON with its end of line."""

    at_ms: int
    text: bytes


class Lost(PenstockError):
    """A batch cannot be delivered, and will not be."""


class Outlet:
    """Belongs to one loop. `close` or `abandon` after the last line."""

    def __init__(self, what: str, deliver: Callable[[list[Line]], Awaitable[None]], sparing: Sparing) -> None:
        """`deliver` takes one batch at a time, for as long as it likes; Lost when there is no use in trying."""
        self.what, self._deliver, self._sparing = what, deliver, sparing
        self._queue: deque[Line] = deque()
        self._queued_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._closed = False
        self.busy = False
        """Whether a batch is under way; one that was given up may still be, in a thread that hangs."""
        self.delivered = 0
        self.drops = dict.fromkeys((QUEUE, WRITE), 0)

    def put(self, line: Line) -> bool:
        """Whether there was room."""
        if self._closed or self._queued_bytes + len(line.text) > QUEUED_BYTES_MAX:
            self.drops[QUEUE] += 1
            self._sparing.warning(f"{QUEUE} {self.what}", "audit events are dropped: %s does not take them", self.what)
            return False
        self._queue.append(line)
        self._queued_bytes += len(line.text)
        if self._writer is None:
            self._writer = duty(self._write(), name=f"the audit to {self.what}")
        return True

    def put_all(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self.put(line)

    async def _write(self) -> None:
        try:
            while self._queue:
                await self._write_batch(self._batch())
        finally:
            self._writer = None

    def _batch(self) -> list[Line]:
        batch, size = [], 0
        while self._queue and size < BATCH_BYTES_MAX:
            batch.append(self._queue.popleft())
            size += len(batch[-1].text)
        return batch

    async def _write_batch(self, batch: list[Line]) -> None:
        self.busy = True
        try:
            await self._deliver(batch)
            self.delivered += len(batch)
        except Lost as lost:
            self.drops[WRITE] += len(batch)
            self._sparing.warning(f"{WRITE} {self.what}", "audit events are lost: %s: %s", self.what, lost)
        finally:
            # What is being written counts until it is: whoever hangs has one batch, and the queue behind it.
            self._queued_bytes -= sum(len(each.text) for each in batch)
        self.busy = False

    async def close(self) -> None:
        """Lets what is queued be delivered, but waits for nobody who hangs."""
        if self._writer is not None:
            await asyncio.wait((self._writer,), timeout=CLOSE_WITHIN_S)
        self.abandon()

    def abandon(self) -> None:
        """Ends at once."""
        self._closed = True
        if self._writer is not None:
            self._writer.cancel()
            self._writer = None
