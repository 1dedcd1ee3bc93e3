"""Long answers bit by bit, so that others are heard in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


async def in_turns(steps: Iterator[None], each: int, result: T) -> T:
    """Goes through the steps, `each` of them at a time; then the result, which they have made."""
    for done, _ in enumerate(steps, start=1):
        if done % each == 0:
            await asyncio.sleep(0)
    return result
