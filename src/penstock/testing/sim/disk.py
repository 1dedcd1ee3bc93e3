"""The disk of a simulated machine, and the work that a node leaves to threads: both take virtual time and may fail.

What is synced survives everything. What is not survives the end of a process, because the kernel has it, and may be
lost, in whole or from some byte on, when the power goes.

A disk that hangs answers nobody until it is over. Work in a thread comes back only then. A file operation on a loop
holds that loop: the callback that made it comes to its end, and nothing after it runs before the disk answers.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from penstock.server.loops.hang_watch import Unanswered
from penstock.testing.memory_files import MemoryFiles

if TYPE_CHECKING:
    from penstock.testing.sim.loop import SimLoop
    from penstock.testing.sim.scheduler import Scheduler

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CAPACITY_BYTES = 1 << 40
_AS_IT_IS: Final = nullcontext()


class Disk(MemoryFiles):
    """One machine's disk. It outlives the processes that run on it."""

    def __init__(self, random: Random) -> None:
        super().__init__(capacity_bytes=CAPACITY_BYTES)
        self._random = random
        self.sync_s = 0.000_5  # a usual sync
        self.slow_s = 0.0  # what a bad day adds to it, at most
        self.scheduler: Scheduler | None = None  # whose time hangs go by
        self._hangs: dict[str, float] = {}  # until when, by prefix
        self._answers_at: float | None = None  # while a thread works: when the disk answers what it asked
        self.waited_for = ""  # the file that such an answer is about

    # -- hanging

    def hang(self, prefix: str, seconds: float) -> None:
        """From now on whoever touches anything under `prefix` waits until so many seconds from now."""
        assert self.scheduler is not None, "a disk that hangs needs time"
        self._hangs[prefix] = max(self._hangs.get(prefix, 0.0), self.scheduler.now + seconds)

    @property
    def hanging(self) -> bool:
        return self.hangs_for_s > 0.0

    @property
    def hangs_for_s(self) -> float:
        """How long it takes until everything on it answers again."""
        now = 0.0 if self.scheduler is None else self.scheduler.now
        return max((until - now for until in self._hangs.values() if until > now), default=0.0)

    def wipe(self) -> None:
        """Another disk takes its place: empty, with room, and well."""
        super().wipe()
        self._hangs.clear()
        self._faults.clear()

    def answers_at(self, path: str) -> float:
        """When the disk answers who touches `path` now, by the world's time; 0 for at once."""
        if not self._hangs or self.scheduler is None:
            return 0.0
        now = self.scheduler.now
        for prefix in [prefix for prefix, until in self._hangs.items() if until <= now]:
            del self._hangs[prefix]
        return max((until for prefix, until in self._hangs.items() if path.startswith(prefix)), default=0.0)

    def in_thread(self, work: Callable[..., T], *args: Any) -> tuple[asyncio.Future[T], float]:
        """Does the work as a thread would; its outcome, and when the disk has answered all of it."""
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._answers_at = 0.0
        try:
            outcome.set_result(work(*args))
        except Exception as broken:  # whatever it is belongs to whoever waits
            outcome.set_exception(broken)
        finally:
            answers_at, self._answers_at = self._answers_at, None
        return outcome, answers_at

    def check(self, path: str, life: int | None = None, *, reading: bool = False) -> None:
        if self._hangs:
            self._touch(path)
        if self._faults or (life is not None and life != self.lives):
            super().check(path, life, reading=reading)

    def _find(self, path: str) -> Any:
        if self._hangs:
            self._touch(path)
        return super()._find(path)

    def _touch(self, path: str) -> None:
        answers_at = self.answers_at(path)
        if self._answers_at is not None:
            if answers_at > self._answers_at:
                self._answers_at, self.waited_for = answers_at, path
        elif answers_at and self.scheduler is not None and self.scheduler.current is not None:
            self.scheduler.current.hold(answers_at, path)

    def looked_at(self) -> AbstractContextManager[object]:
        """Whoever only looks, from outside of the world, meets no failure and waits for nothing."""
        return self._looked_at_well() if self._faults or self._hangs else _AS_IT_IS

    @contextmanager
    def _looked_at_well(self) -> Iterator[None]:
        failing, hanging = self._faults, self._hangs
        self._faults, self._hangs = {}, {}
        try:
            yield
        finally:
            self._faults, self._hangs = failing, hanging

    # -- failing

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
        """Changes under `prefix` go well again. A hang ends by itself: whoever waits in it was told when."""
        self.heal(prefix)
        self.slow_s = 0.0


class SimOffload:
    """The Offload port: work is done on the loop, at the beginning or at the end of the time that it takes.

    Both are true to a thread. Done early, what is written meanwhile is not covered by a sync; done late, a crash in
    between finds nothing done.
    """

    def __init__(self, loop: SimLoop, disk: Disk, random: Random) -> None:
        self._loop, self._disk, self._random = loop, disk, random
        self._unanswered: dict[asyncio.Future[Any], Unanswered] = {}

    def unanswered(self) -> list[Unanswered]:
        return [*self._unanswered.values()]

    def _wait(self, future: asyncio.Future[Any], path: str) -> None:
        self._unanswered.setdefault(future, Unanswered(self._loop.time() * 1_000, path))
        future.add_done_callback(lambda done: self._unanswered.pop(done, None))

    def call(self, work: Callable[[*Ts], T], *args: *Ts) -> Awaitable[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        if self._random.random() < 0.5:
            self._loop.call_later(self._disk.latency_s(), self._do_late, future, work, args)
        else:
            outcome, answers_at = self._disk.in_thread(work, *args)
            self._loop.call_later(self._disk.latency_s(), self._answered, outcome, future, answers_at)
        return future

    def _do_late(self, future: asyncio.Future[T], work: Callable[..., T], args: tuple[Any, ...]) -> None:
        if future.cancelled():
            return
        answers_at, path = max(((self._disk.answers_at(path), path) for path in _paths(work, args)), default=(0.0, ""))
        if answers_at:
            self._wait(future, path)
            self._loop.at_world_time(answers_at, self._do_late, future, work, args)
            return
        outcome, answers_at = self._disk.in_thread(work, *args)
        self._answered(outcome, future, answers_at)

    def _answered(self, outcome: asyncio.Future[T], future: asyncio.Future[T], answers_at: float) -> None:
        if answers_at > self._loop.scheduler.now:
            self._wait(future, self._disk.waited_for)
            self._loop.at_world_time(answers_at, _hand_over, outcome, future)
        else:
            _hand_over(outcome, future)

    async def run(self, task: str, arguments: dict[str, object]) -> dict[str, object]:
        """What a helper process would do, on the same disk."""
        from penstock.storage.clean_job import CleanJob
        from penstock.storage.compaction import clean

        assert task == "clean", f"no helper process knows {task}"
        await asyncio.sleep(self._disk.latency_s() * 10)
        assert isinstance(arguments["job"], dict)
        job = CleanJob.from_json(arguments["job"])
        outcome, answers_at = self._disk.in_thread(clean, self._disk, arguments["directory"], job)
        cleaned: asyncio.Future[Any] = self._loop.create_future()
        self._answered(outcome, cleaned, answers_at)
        return dict((await cleaned).to_json())

    def close(self) -> None:
        """Nothing runs that would have to be ended: it is all on the loop."""


def _paths(work: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """The files that a call says it will touch: the one whose method it is, and those that it is given."""
    own = getattr(getattr(work, "__self__", None), "path", None)
    return [each for each in (own, *args) if isinstance(each, str)]


def _hand_over(outcome: asyncio.Future[T], future: asyncio.Future[T]) -> None:
    broken = outcome.exception()
    if future.cancelled():
        return
    if broken is not None:
        future.set_exception(broken)
    else:
        future.set_result(outcome.result())
