"""The real offload, with a count of what it is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

from penstock.server.loops.ports import ThreadOffload

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class CountingOffload(ThreadOffload):
    """`busy` is how many calls and tasks have not ended; whoever moves time waits until there are none."""

    __slots__ = ("busy",)

    def __init__(self) -> None:
        super().__init__()
        self.busy = 0

    def call(self, work: Callable[[*Ts], T], *args: *Ts) -> Awaitable[T]:
        running = asyncio.ensure_future(super().call(work, *args))
        self.busy += 1
        running.add_done_callback(self._ended)
        return running

    async def run(self, task: str, arguments: dict[str, object]) -> dict[str, object]:
        self.busy += 1
        try:
            return await super().run(task, arguments)
        finally:
            self.busy -= 1

    def _ended(self, _running: object) -> None:
        self.busy -= 1
