"""The disk of a simulated machine, and the work that a node leaves to threads: both take virtual time and may fail.

What is synced survives everything. What is not survives the end of a process, because the kernel has it, and may be
lost, in whole or from some byte on, when the power goes.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.testing.memory_files import MemoryFiles

if TYPE_CHECKING:
    from penstock.testing.sim.loop import SimLoop

T = TypeVar("T")

CAPACITY_BYTES = 1 << 40


class Disk(MemoryFiles):
    """One machine's disk. It outlives the processes that run on it."""

    def __init__(self, random: Random) -> None:
        super().__init__(capacity_bytes=CAPACITY_BYTES)
        self._random = random
        self.sync_s = 0.000_5  # a usual sync
        self.slow_s = 0.0  # what a bad day adds to it, at most

    def latency_s(self) -> float:
        chance = self._random.random()
        return self.sync_s * (0.5 + chance) + self.slow_s * chance

    def cut_power(self) -> None:
        """Loses what was not synced: all of it, some, or by luck nothing."""
        random = self._random
        match random.randrange(3):
            case 0:
                self.crash(keep_names=random.random() < 0.5)
            case 1:
                self.crash(lambda _path, unsynced: random.randint(0, unsynced), keep_names=random.random() < 0.5)
            case _:
                self.crash(lambda _path, unsynced: unsynced, keep_names=True)

    def break_down(self, prefix: str, *, full: bool) -> None:
        """From now on nothing under `prefix` can be changed."""
        self.fail(prefix, errno.ENOSPC if full else errno.EIO)

    def mend(self, prefix: str) -> None:
        self.heal(prefix)
        self.slow_s = 0.0


class SimOffload:
    """The Offload port: work is done on the loop, at the beginning or at the end of the time that it takes.

    Both are true to a thread. Done early, what is written meanwhile is not covered by a sync; done late, a crash in
    between finds nothing done.
    """

    def __init__(self, loop: SimLoop, disk: Disk, random: Random) -> None:
        self._loop, self._disk, self._random = loop, disk, random

    def call(self, work: Callable[..., T], *args: Any) -> Awaitable[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        if self._random.random() < 0.5:
            self._loop.call_later(self._disk.latency_s(), _do, future, work, args)
        else:
            outcome = self._loop.create_future()
            _do(outcome, work, args)
            self._loop.call_later(self._disk.latency_s(), _hand_over, outcome, future)
        return future

    async def run(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a helper process would do, on the same disk."""
        from penstock.storage.clean_job import CleanJob
        from penstock.storage.compaction import clean

        assert task == "clean", f"no helper process knows {task}"
        await asyncio.sleep(self._disk.latency_s() * 10)
        return clean(self._disk, arguments["directory"], CleanJob.from_json(arguments["job"])).to_json()

    def close(self) -> None:
        """Nothing runs that would have to be ended: it is all on the loop."""


def _do(future: asyncio.Future[T], work: Callable[..., T], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(work(*args))
    except Exception as broken:  # whatever it is belongs to whoever waits
        future.set_exception(broken)


def _hand_over(outcome: asyncio.Future[T], future: asyncio.Future[T]) -> None:
    broken = outcome.exception()
    if future.cancelled():
        return
    if broken is not None:
        future.set_exception(broken)
    else:
        future.set_result(outcome.result())
