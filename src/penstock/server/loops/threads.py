"""A few threads that make C calls for an event loop: one queue in, one call back to the loop for each."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Call(NamedTuple):
    """What was asked for: the future knows what `work` gives, the queue of all calls does not."""

    future: asyncio.Future[Any]
    work: Callable[..., object]
    args: tuple[object, ...]


class Running(NamedTuple):
    """A call that is being made: since when, by the monotonic clock, what, and with what."""

    since_s: float
    work: Callable[..., object]
    args: tuple[object, ...]


class CallThreads:
    """Threads start when they are needed, up to `most`; `call` belongs to one loop."""

    __slots__ = ("_calls", "_closed", "_loop", "_most", "_running", "_threads", "_unfinished")

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._unfinished = 0
        # By thread, since when it makes which call: each entry is written by its own thread and replaced as a whole.
        self._running: dict[int, Running | None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def call(self, work: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """What `work` returns or raises, in time. A call that nobody waits for any more may never begin."""
        if self._closed:
            raise RuntimeError("the threads have ended")
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._unfinished += 1
        if self._unfinished > len(self._threads) < self._most:
            self._start_one()
        self._calls.put(_Call(future, work, args))
        return future

    def running(self) -> list[Running]:
        """The calls that are being made; from any thread."""
        return [each for each in list(self._running.values()) if each is not None]

    def close(self) -> None:
        """Returns when everything that was asked for is done."""
        self._closed = True
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _start_one(self) -> None:
        # A daemon, so that one who forgets to close does not keep the process from ending.
        name = f"penstock-offload-{len(self._threads)}"
        thread = threading.Thread(target=self._attend, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _attend(self) -> None:
        take, loop = self._calls.get, self._loop
        assert loop is not None, "a thread starts with the first call"
        me, running = threading.get_ident(), self._running
        while (call := take()) is not None:
            future, work, args = call
            result: object = None
            failure: BaseException | None = None
            if not future.cancelled():
                running[me] = Running(time.monotonic(), work, args)
                try:
                    result = work(*args)
                except BaseException as error:
                    failure = error
                running[me] = None
            # A loop that is closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._settle, future, result, failure)
            del call, future, work, args, result, failure

    def _settle(self, future: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
        self._unfinished -= 1
        if future.done():
            return
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)
