"""How long anybody waits for something of this room."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 2.0


async def within(work: Coroutine[Any, Any, T], limit_s: float = PATIENCE_S) -> T:
    """What `work` gives; TimeoutError when it takes longer."""
    async with asyncio.timeout(limit_s):
        return await work
