"""What all connections of a loop share on their way in: one scratch buffer and one budget of request bytes."""

from __future__ import annotations

import asyncio
from typing import Protocol

SCRATCH_BYTES = 256 << 10

# glibc gives the end of its heap back to the kernel whenever it is larger than twice the largest block that ever came
# and went, and fetches it anew page by page: a fifth of what a produce of 1 MB costs. This much may be in flight on a
# connection, so twice as much is kept at most.
_RECYCLED_BYTES = 4 << 20


class Waiter(Protocol):
    """A stream that stopped reading until the budget has room."""

    def budget_freed(self) -> None: ...


class Intake:
    """The scratch buffer and the bytes that requests hold.

    One scratch serves every connection, because a loop reads one socket at a time and a stream keeps nothing in it
    between two reads. Own buffers of that size would be 500 MB at 2,000 connections.

    As in Kafka a request is granted its whole size while anything at all is left, so the budget may be overdrawn by
    one request. That way a request larger than the budget can still be served, and nobody who holds a part of a
    grant waits for the rest of it. What streams had read before they stopped counts too, but never keeps the budget
    from being granted to one of them: else they would all wait for each other.
    """

    __slots__ = (
        "_loop", "_recycles", "_waiting", "_waking", "budget_bytes", "held_bytes", "scratch", "stashed_bytes", "tick",
        "view",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, *, budget_bytes: int = -1) -> None:
        """`budget_bytes` below one means no bound (`queued.max.request.bytes` = -1)."""
        self._loop = loop
        self.scratch = bytearray(SCRATCH_BYTES)
        self.view = memoryview(self.scratch)
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self.stashed_bytes = 0  # of these, what belongs to no request that was granted
        self.tick = 0  # advanced by the idle wheel; streams stamp themselves with it
        self._recycles = False  # memory of large frames is kept for the next ones
        self._waiting: dict[Waiter, None] = {}  # in order of arrival
        self._waking = False

    @property
    def exhausted(self) -> bool:
        return 0 < self.budget_bytes <= self.held_bytes and self.held_bytes > self.stashed_bytes

    @property
    def waiting(self) -> int:
        """How many connections have stopped reading for want of memory."""
        return len(self._waiting)

    def room(self, size: int) -> bytearray:
        """A buffer for a frame, whose bytes are anything until they are written."""
        # Only here, where frames are large: a command that asks for a little starts without the kernels.
        from penstock.kernels import unfilled

        if not self._recycles and size > SCRATCH_BYTES:
            self._recycles = True
            unfilled(_RECYCLED_BYTES)  # given back as soon as it is made, and never touched
        return unfilled(size)

    def hold(self, size: int) -> None:
        """Counts bytes that are in memory already; never refuses."""
        self.held_bytes += size

    def stash(self, size: int) -> None:
        """Counts bytes that were read and wait for their turn."""
        self.held_bytes += size
        self.stashed_bytes += size

    def unstash(self, size: int) -> None:
        self.stashed_bytes -= size
        self.release(size)

    def release(self, size: int) -> None:
        self.held_bytes -= size
        if self._waiting and not self._waking and not self.exhausted:
            # Not from here: the caller is in the middle of its own request.
            self._waking = True
            self._loop.call_soon(self._wake)

    def wait(self, stream: Waiter) -> None:
        """Calls `stream.budget_freed` once there is room again, first come first served."""
        self._waiting[stream] = None

    def forget(self, stream: Waiter) -> None:
        self._waiting.pop(stream, None)

    def _wake(self) -> None:
        self._waking = False
        for stream in list(self._waiting):
            if self.exhausted:
                return
            if stream in self._waiting:
                del self._waiting[stream]
                stream.budget_freed()
