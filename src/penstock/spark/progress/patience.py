"""How long anybody waits for something of this room."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 2.0


async def within(work: Coroutine[Any, Any, T], limit_s: float = PATIENCE_S) -> T:
    """What `work` gives; TimeoutError when it takes longer."""
    async with asyncio.timeout(limit_s):
        return await work


class Resting:
    """What failed is not tried again at once: a query that cannot tell shall not wait for it in every batch."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def __contains__(self, about: str) -> bool:
        return self._until.get(about, 0.0) > time.monotonic()

    def begin(self, about: str) -> None:
        now = time.monotonic()
        self._until = {name: until for name, until in self._until.items() if until > now}
        self._until[about] = now + self._seconds
