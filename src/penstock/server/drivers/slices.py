"""Long work on a loop, cut into slices, so that others get their turn."""

from __future__ import annotations

import asyncio
from typing import Final

SLICE_S: Final = 0.005


class Slices:
    """Begins with the first; whoever works asks `over` now and then, and breathes."""

    __slots__ = ("_loop", "_until")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._until = loop, loop.time() + SLICE_S

    @property
    def over(self) -> bool:
        return self._loop.time() >= self._until

    async def breathe(self) -> None:
        """Lets others have the loop."""
        await asyncio.sleep(0)
        self._until = self._loop.time() + SLICE_S
