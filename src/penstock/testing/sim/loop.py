"""An event loop per node over one shared scheduler, so that killing a node drops everything it had scheduled."""

from __future__ import annotations

import asyncio
import asyncio.events as events
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final, TypeVarTuple

from penstock.testing.sim.handle import SimHandle, Timetable

Ts = TypeVarTuple("Ts")

TICK_S = 1e-6

Report = Callable[["SimLoop", dict[str, Any]], None]
Connect = Callable[["SimLoop", str, int, Callable[[], Any]], Coroutine[Any, Any, Any]]


class SimLoop(asyncio.AbstractEventLoop):
    """The loop of one life of one process. Its time may run faster or slower than the world's."""

    def __init__(
        self,
        scheduler: Timetable,
        name: str,
        *,
        report: Report,
        connect: Connect | None = None,
        rate: float = 1.0,
        ahead_s: float = 0.0,
    ) -> None:
        """`rate` is how fast its clock runs, `ahead_s` by how much; `report` hears what nobody caught."""
        self.scheduler, self.name, self.rate, self.ahead_s = scheduler, name, rate, ahead_s
        self._soon = scheduler.soon
        self.caps: dict[int, int] | None = None  # the newest versions that an old client knows
        self.dead = False
        self.halted = False  # dead, paused or held up: the scheduler looks here before every callback
        self.held: list[asyncio.Handle] = []
        self.longest_hold_s = 0.0
        """The longest time for which one file operation after the other kept this loop from running."""
        self.held_by = ""
        """The file that a call is about which has not come back."""
        self._paused = False
        self._held_since = self._held_until = -1.0
        self._report, self._connect = report, connect
        self._tasks: dict[int, weakref.ref[asyncio.Task[Any]]] = {}
        self._task_count = 0
        self._tasks_kept = 64

    # -- time

    def time(self) -> float:
        return self.scheduler.now * self.rate + self.ahead_s

    def world_time(self, when: float) -> float:
        """The world's time at which this loop's clock shows `when`."""
        return max(self.scheduler.now, (when - self.ahead_s) / self.rate)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = SimHandle(0.0, callback, args, self, context)
        if not self.dead:
            self._soon(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.at_world_time(self.world_time(when), callback, *args, context=context, shown=when)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # A timer takes time, however little: who finds at its deadline that rounding left a bit of it sets it again.
        scheduler = self.scheduler
        now = scheduler.now
        when = now * self.rate + self.ahead_s + (delay if delay > TICK_S else TICK_S)
        handle = SimHandle(when, callback, args, self, context)
        if not self.dead:
            handle._scheduled = True
            at = (when - self.ahead_s) / self.rate
            scheduler.at(at if at > now else now, handle)
        return handle

    def at_world_time(
        self,
        at: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
        shown: float = 0.0,
    ) -> asyncio.TimerHandle:
        """Calls at a moment of the world's time, whatever this loop's clock shows."""
        handle = SimHandle(shown, callback, args, self, context)
        if not self.dead:
            handle._scheduled = True
            self.scheduler.at(at, handle)
        return handle

    # -- being stopped

    def pause(self) -> None:
        """As SIGSTOP: whatever falls due is done late, in its order."""
        self._paused = self.halted = True

    def resume(self) -> None:
        self._paused = False
        self._go_on()

    def hold(self, until: float, by: str = "") -> None:
        """A call that returns only at `until`, by the world's time: from the end of this callback on nothing runs.

        `by` is the file that it is about.

        Calls of one callback wait one after the other, so they are over when the last is.
        """
        now = self.scheduler.now
        if self.dead or until <= max(now, self._held_until):
            return
        if self._held_until <= now:
            self._held_since = now
        self._held_until, self.held_by = until, by
        self.longest_hold_s = max(self.longest_hold_s, until - self._held_since)
        self.halted = True
        self.scheduler.at(until, asyncio.TimerHandle(until, self._go_on, (), _CLOCKWORK, None))  # type: ignore[arg-type]  # all that a handle asks of a loop

    def _go_on(self) -> None:
        """Does what was put off, unless something else keeps this loop still."""
        if self.dead or self._paused or self.scheduler.now < self._held_until:
            return
        self.halted, self.held_by = False, ""
        held, self.held = self.held, []
        for handle in held:
            self.scheduler.soon(handle)

    def kill(self) -> None:
        """Nothing of this loop runs ever again.

        Its coroutines are closed now, in the order they were made, rather than when the collector finds them: what
        their `finally` blocks do must come to nothing, but always in the same order. Ports see that the loop is dead.
        """
        self.dead = self.halted = True
        with self.running():
            while self._tasks:  # a closing one may begin another
                tasks, self._tasks = self._tasks, {}
                for found in [reference() for _, reference in sorted(tasks.items())]:
                    if found is not None and not found.done():
                        _bury(found)
        self.held.clear()  # not before: only these know of tasks that were never begun, which would complain of it

    @contextmanager
    def running(self) -> Iterator[None]:
        """What is done meanwhile believes to be on this loop."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(outer)

    # -- tasks and futures

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        self._task_count += 1
        task = asyncio.Task(coro, loop=self, name=name or f"{self.name}-{self._task_count}", context=context)
        self._tasks[self._task_count] = weakref.ref(task)
        if len(self._tasks) > self._tasks_kept:
            self._tasks = {
                number: each
                for number, each in self._tasks.items()
                if (found := each()) is not None and not found.done()
            }
            self._tasks_kept = max(64, 2 * len(self._tasks))
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self._report(self, context)

    # -- what code on a loop asks for

    get_debug = bool  # False, without a call into Python: every future that is made asks it

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return self.dead

    def run_in_executor(  # type: ignore[override]  # it only refuses
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        raise AssertionError(f"{self.name} wants a thread for {func!r}: only the Offload port may do that here")

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_options: Any
    ) -> tuple[Any, Any]:
        """Our own client dials this way; it ends in the simulated network."""
        assert self._connect is not None, f"{self.name} has no network"
        transport, protocol = await self._connect(self, host, port, protocol_factory)
        return transport, protocol


class _Clockwork:
    """Runs what wakes a loop: a loop that stands still cannot wake itself."""

    name = "clockwork"
    dead = halted = False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise AssertionError(f"waking a loop failed: {context}")


_CLOCKWORK: Final = _Clockwork()


def _bury(task: asyncio.Task[Any]) -> None:
    """Ends a task of a dead process without a word."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio has no public way to say so
    coroutine = task.get_coro()
    try:
        coroutine.close()
    except BaseException:
        # It awaited something while it was being closed. In a process that died nobody would have heard of it.
        return
