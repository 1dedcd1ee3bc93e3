"""An event loop in a daemon thread, and calls into it from other threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from penstock.client.errors import ClientError, Closed

T = TypeVar("T")

FAREWELL_S = 5.0
"""How long an object that nobody closed may still work when it is dropped or the process ends."""


class Guests:
    """Callbacks of the application that the loop wants to have run in the application's own thread.

    There they may call the client like any other code of that thread. They wait until somebody hosts them.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._shut = False

    def shut(self) -> None:
        """Nobody will host any more: callbacks are not run."""
        self._shut = True

    def wrap(self, callback: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
        """For the loop: runs `callback` in the hosting thread and waits for it."""

        async def run(argument: Any) -> Any:
            if self._shut:
                return None
            loop = asyncio.get_running_loop()
            done: asyncio.Future[Any] = loop.create_future()

            def settle(result: Any, failure: BaseException | None) -> None:
                if done.done():
                    return
                if failure is None:
                    done.set_result(result)
                else:
                    done.set_exception(failure)

            def visit() -> None:
                if done.cancelled():
                    return
                try:
                    result, failure = callback(argument), None
                except Exception as broken:
                    result, failure = None, broken
                loop.call_soon_threadsafe(settle, result, failure)

            self._waiting.put(visit)
            told = await done
            # A coroutine function's work belongs to the loop.
            return await told if inspect.isawaitable(told) else told

        return run

    def host_until(self, future: concurrent.futures.Future[Any]) -> None:
        """Runs callbacks in the calling thread until `future` is done."""
        future.add_done_callback(lambda _: self._waiting.put(None))
        while True:
            visit = self._waiting.get()
            if visit is not None:
                visit()
            elif future.done():
                return


class LoopThread:
    """Runs from construction to `stop`. All methods are for other threads than its own."""

    def __init__(self, name: str) -> None:
        import uvloop

        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def inside(self) -> bool:
        """Whether the caller is a callback of this very loop."""
        return threading.current_thread() is self._thread

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine and waits for it. An interrupt of the waiting thread cancels it."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call_hosting(self, work: Coroutine[Any, Any, T], guests: Guests) -> T:
        """The same, while the calling thread runs the application's callbacks that come up meanwhile."""
        future = self.begin(work)
        try:
            guests.host_until(future)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Runs a coroutine; the future may be waited for or forgotten."""
        if self.inside or self.loop.is_closed() or not self._thread.is_alive():
            work.close()
            if self.inside:
                raise ClientError("a blocking call from inside a callback would wait for itself for ever")
            raise Closed("the client is closed")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def do(self, work: Callable[..., T], *args: Any, **named: Any) -> T:
        """Runs a plain function on the loop and waits for it."""

        async def run() -> T:
            return work(*args, **named)

        return self.call(run())

    def stop(self) -> None:
        """Ends the loop and the thread; stopping twice is fine."""
        if self._thread.is_alive() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            if not self.inside:
                self._thread.join(FAREWELL_S)

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(_settle())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def _settle() -> None:
    """Lets cancelled tasks end and closed connections go."""
    for _ in range(3):
        await asyncio.sleep(0)


def close_at_the_latest(
    owner: object, thread: LoopThread, close: Callable[[], Coroutine[Any, Any, None]]
) -> weakref.finalize[Any, Any]:
    """Closes when `owner` is dropped or the process ends, within a few seconds, if nobody did before."""
    return weakref.finalize(owner, _farewell, thread, close)


def _farewell(thread: LoopThread, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    if thread.inside:
        thread.loop.create_task(close()).add_done_callback(lambda _: thread.stop())
        return
    try:
        thread.begin(close()).result(FAREWELL_S)
    except (ClientError, concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
        pass
    finally:
        thread.stop()
