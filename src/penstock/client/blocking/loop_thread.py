"""An event loop in a daemon thread, and calls into it from other threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from penstock.client.errors import ClientError, Closed

T = TypeVar("T")

FAREWELL_S = 5.0
"""How long an object that nobody closed may still work when it is dropped or the process ends."""


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
