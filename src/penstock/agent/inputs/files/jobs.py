"""The tasks of an input that does several things at once: they begin together, and the first that fails ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Jobs:
    """`run` returns when all have ended, by themselves or by `end`; it raises what the first of them raised."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, *jobs: Coroutine[Any, Any, None]) -> None:
        self._tasks = [asyncio.create_task(job) for job in jobs]
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            await self.end()
        for task in self._tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
