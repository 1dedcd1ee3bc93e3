"""Runs a node until it is told to stop, and sees to it that the process ends then, whatever hangs.

SIGTERM and SIGINT are heard in a thread of their own: a loop that is held hears nothing. The first begins a clean stop,
which has a bound; several at once are one wish (a terminal and a supervisor often both send one); one that comes later
is impatience and stops the node at once. A clean stop ends with 0; a bound that was reached, impatience and a node that
cannot go on end with 1.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.model.errors import PenstockError
from penstock.server.loops.duty import DUTY
from penstock.server.loops.lasting import LASTING
from penstock.server.loops.processor_time import ProcessorTime

if TYPE_CHECKING:
    from penstock.server.node import Node

log = logging.getLogger("penstock.server")

COLLECTING_AFTER: Final = (10_000, 20, 20)
"""New objects before the collector looks at them. A broker makes hardly any cycles, but hundreds of requests that wait
for acknowledgements are enough for Python's own 700: it would look through them over and over."""

STOP_WITHIN_S: Final = 120.0
"""A node hands over for ten seconds at most; the rest is for a slow disk that has much to sync."""
END_WITHIN_S: Final = 15.0
"""How long a node that failed, or whose user is impatient, may take to let go of threads and files."""
WORDS_WITHIN_S: Final = 2.0
ONE_WISH_S: Final = 1.0
STOPPING: Final = frozenset({signal.SIGTERM, signal.SIGINT})
INNERMOST: Final = 4
AT_REST: Final = frozenset({"run", "_run", "_attend", "_worker", "wait"})
"""Where threads are that have nothing to do: the loops, ours for calls, those of executors, timers."""


def serve(
    make_node: Callable[[], Node], ready: Callable[[Node], None], *, stop_within_s: float = STOP_WITHIN_S
) -> None:
    """Runs a node until SIGTERM or SIGINT, then stops it cleanly.

    The process is to end when this returns or raises, and hears no more of these signals.

    PenstockError when the node itself cannot go on: its metadata log or its last log directory is gone, or a part of it
    has broken. SystemExit when somebody was impatient.
    """
    import uvloop

    run = _Run(make_node, ready, stop_within_s)
    signals = _Signals()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run.main(signals))
    run.bound.lift()


class _Run:
    """One node from start to end."""

    def __init__(self, make_node: Callable[[], Node], ready: Callable[[Node], None], stop_within_s: float) -> None:
        self._make_node, self._ready, self._stop_within_s = make_node, ready, stop_within_s
        self._node: Node | None = None
        self._ending: asyncio.Task[None] | None = None
        self.bound = Bound()

    async def main(self, signals: _Signals) -> None:
        loop = asyncio.get_running_loop()
        stopping, hurrying = asyncio.Event(), asyncio.Event()

        def stop() -> None:
            self.bound.set(self._stop_within_s, self._what_hangs)
            _call_soon(loop, stopping.set)

        def hurry() -> None:
            self.bound.set(END_WITHIN_S, self._what_hangs)
            _call_soon(loop, hurrying.set)

        signals.listen(stop, hurry)
        # Loading makes nothing but objects that stay; the collector would walk them over and over and find nothing.
        gc.disable()
        node = self._node = self._make_node()
        node.processor = ProcessorTime
        node.on_doom = self._doomed
        loop.set_exception_handler(self._uncaught)
        node.when_uncaught(self._uncaught)
        try:
            await self._live(node, stopping, hurrying)
        except BaseException:
            # Nothing can be handed over or flushed any more; what others can still read is on their disks. The alarm of
            # the loop's watch must not ring on: it would end a process that is on its way out.
            self.bound.set(END_WITHIN_S, self._what_hangs)
            with suppress(Exception):
                node.crash()
            raise

    async def _live(self, node: Node, stopping: asyncio.Event, hurrying: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        starting = loop.create_task(node.start())
        failing = loop.create_task(node.failed())
        signalled = loop.create_task(stopping.wait())
        hurried = loop.create_task(hurrying.wait())
        await asyncio.wait((starting, failing, signalled), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            gc.freeze()
            gc.set_threshold(*COLLECTING_AFTER)
            gc.enable()
            LASTING.begin()
            self._ready(node)
            await asyncio.wait((failing, signalled), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            starting.add_done_callback(_heard)
            raise PenstockError(f"the node has stopped: {failing.result()}")
        ending = self._ending = loop.create_task(node.stop())
        await asyncio.wait((ending, hurried), return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            ending.add_done_callback(_heard)
            log.warning("stopped at once; the next start will recover")
            raise SystemExit(1)
        ending.result()
        if failing.done():
            raise PenstockError(f"the node has stopped: {failing.result()}")
        for waiting in (failing, hurried):
            waiting.cancel()
        await asyncio.gather(starting, return_exceptions=True)

    def _uncaught(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """What nobody caught: a duty that ended ends the node, anything else is logged."""
        words, broken = context.get(DUTY), context.get("exception")
        if not isinstance(words, str) or self._node is None:
            loop.default_exception_handler(context)
            return
        log.error("%s", words, exc_info=broken if isinstance(broken, BaseException) else None)
        self._node.doomed(words)

    def _doomed(self, why: str) -> None:
        """Called in any thread. A loop that is held hears nothing of it, and the process has to end all the same."""
        self.bound.set(END_WITHIN_S, lambda: f"{why}; {self._what_hangs()}")

    def _what_hangs(self) -> str:
        doing = "making the node" if self._node is None else self._node.ending
        ending = () if self._ending is None else _waits_at(self._ending)
        return "; ".join((f"it was {doing}", *ending, *_works_at()))


class Bound:
    """The end of all patience: a process that is still there then says what hangs and is gone."""

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []

    def set(self, within_s: float, what_hangs: Callable[[], str]) -> None:
        """Ends the process in so long, unless it has ended before. An earlier bound stays."""
        timer = threading.Timer(within_s, self._end, (within_s, what_hangs))
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def lift(self) -> None:
        for timer in self._timers:
            timer.cancel()

    @staticmethod
    def _end(within_s: float, what_hangs: Callable[[], str]) -> None:
        # Nobody may read what we say, and then saying it hangs too.
        last = threading.Timer(WORDS_WITHIN_S, os._exit, (1,))
        last.daemon = True
        last.start()
        words = f"penstock: the node did not end within {within_s:.0f} s and is cut off; the next start will recover: "
        os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, f"{words}{what_hangs()}\n".encode())
        os._exit(1)


class _Signals:
    """SIGTERM and SIGINT for a thread of ours. All others, and helper processes, have them blocked from now on.

    They stay so: one more wish to stop must not hurt a process that is about to end.
    """

    def __init__(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)

    def listen(self, stop: Callable[[], None], hurry: Callable[[], None]) -> None:
        threading.Thread(target=self._attend, args=(stop, hurry), name="penstock-signals", daemon=True).start()

    @staticmethod
    def _attend(stop: Callable[[], None], hurry: Callable[[], None]) -> None:
        signal.sigwait(STOPPING)
        first_s = time.monotonic()
        stop()
        while time.monotonic() - first_s < ONE_WISH_S:
            signal.sigwait(STOPPING)
        hurry()


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    # A loop that is closed has nothing left to stop.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


def _heard(task: asyncio.Task[object]) -> None:
    """Whatever becomes of it, somebody else has told why."""
    if not task.cancelled():
        task.exception()


def _waits_at(task: asyncio.Task[object]) -> Iterator[str]:
    """Where a task stands still, the innermost call first."""
    calls: list[str] = []
    awaited: object = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        calls.append(_call(frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno))
        awaited = getattr(awaited, "cr_await", None)
    if calls:
        yield f"waiting in {' < '.join(calls[: -INNERMOST - 1 : -1])}"


def _works_at() -> Iterator[str]:
    """What each thread is in the middle of, the innermost call first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident() and frame.f_code.co_name not in AT_REST:
            calls = traceback.extract_stack(frame)[: -INNERMOST - 1 : -1]
            words = " < ".join(_call(each.name, each.filename, each.lineno) for each in calls)
            yield f"thread {names.get(ident, ident)} in {words}"


def _call(name: str, file: str, line: int | None) -> str:
    return f"{name} ({file.rpartition('/')[2]}:{line})"
