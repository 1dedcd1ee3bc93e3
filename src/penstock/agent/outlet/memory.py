"""Who may hold how much memory: a bound for all, with a part of it that nobody can take from an input.

Half of the memory is reserved, the same for each input; the other half is for whoever comes, in turn. So an input that
floods the agent waits for itself, and one that says a word an hour finds room for it. What does not fit at all passes
when the shared half is empty, alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

RESERVED_SHARE: Final = 2
"""One part in so many is reserved."""


class MemoryGate:
    """Bytes for all inputs of an agent. Everything is called on the loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._shares: list[Share] = []
        self._turns: deque[Share] = deque()
        """Those that wait, the next first."""
        self._reserve_bytes = 0
        self._shared_limit_bytes = limit_bytes
        self._shared_used_bytes = 0

    def share(self) -> Share:
        """A new input's part."""
        made = Share(self)
        self._shares.append(made)
        self._divide()
        return made

    def resize(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._divide()

    def leave(self, share: Share) -> None:
        """An input goes; its part is for the others. What it still holds stays counted until it is given back."""
        if share in self._shares:
            self._shares.remove(share)
            self._divide()

    def _divide(self) -> None:
        self._reserve_bytes = self.limit_bytes // RESERVED_SHARE // max(len(self._shares), 1)
        self._shared_limit_bytes = self.limit_bytes - self._reserve_bytes * len(self._shares)
        self._shared_used_bytes = sum(self._beyond(share.used_bytes) for share in self._shares)
        self.serve()

    def _beyond(self, used_bytes: int) -> int:
        return max(used_bytes - self._reserve_bytes, 0)

    def _needs_shared(self, share: Share, size: int) -> int:
        return self._beyond(share.used_bytes + size) - self._beyond(share.used_bytes)

    def fits(self, share: Share, size: int, *, in_turn: bool) -> bool:
        """`in_turn` when nobody waits before it; else only what is reserved is there for it."""
        needed = self._needs_shared(share, size)
        if not needed:
            return True
        if not in_turn:
            return False
        if self._shared_used_bytes + needed <= self._shared_limit_bytes:
            return True
        # Nothing that could be given back would make room for it.
        return not share.used_bytes and not self._shared_used_bytes

    def charge(self, share: Share, size: int) -> None:
        before = self._beyond(share.used_bytes)
        share.used_bytes += size
        self.used_bytes += size
        self._shared_used_bytes += self._beyond(share.used_bytes) - before

    def wait(self, share: Share) -> None:
        if share not in self._turns:
            self._turns.append(share)

    @property
    def crowded(self) -> bool:
        """Whether somebody waits."""
        return bool(self._turns)

    def serve(self) -> None:
        """Lets in those who wait, in turn, one portion each, as long as there is room."""
        progress = True
        while progress and self._turns:
            progress = False
            in_turn = True
            for share in list(self._turns):
                size = share.next_size
                if size is None:
                    self._turns.remove(share)
                elif self.fits(share, size, in_turn=in_turn):
                    self._turns.remove(share)
                    share.admit()
                    progress = True
                    if share.next_size is not None:
                        self._turns.append(share)
                else:
                    # Who comes later must not take what this one is waiting for.
                    in_turn = False


class Share:
    """One input's part of the memory."""

    def __init__(self, gate: MemoryGate) -> None:
        self._gate = gate
        self.used_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.refused = False
        """Somebody was turned away since this was last set to False."""

    @property
    def pressed(self) -> bool:
        """Whether somebody waits for room or was turned away."""
        return self.refused or self.next_size is not None

    @property
    def next_size(self) -> int | None:
        """Of the first that waits and has not given up."""
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()
        return self._waiting[0][0] if self._waiting else None

    def admit(self) -> None:
        size, future = self._waiting.popleft()
        self._gate.charge(self, size)
        future.set_result(None)

    def has_room(self, size: int) -> bool:
        return self.next_size is None and self._gate.fits(self, size, in_turn=not self._gate.crowded)

    def try_take(self, size: int) -> bool:
        if self.has_room(size):
            self._gate.charge(self, size)
            return True
        self.refused = True
        return False

    async def take(self, size: int) -> None:
        """Waits for room. Who is cancelled meanwhile holds nothing."""
        if self.has_room(size):
            self._gate.charge(self, size)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, future))
        self._gate.wait(self)
        # It may be the first of those who wait and fit at once.
        self._gate.serve()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back(size)
            else:
                self._gate.serve()
            raise

    def change(self, more: int) -> None:
        """What is held has grown or shrunk on its way; nobody waits for that."""
        self._gate.charge(self, more)
        if more < 0:
            self._gate.serve()

    def give_back(self, size: int) -> None:
        self._gate.charge(self, -size)
        self._gate.serve()
