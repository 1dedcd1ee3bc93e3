"""A thread with a loop, where records are fetched, unpacked and looked through."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")
STOP_WITHIN_S: Final = 10.0


class ReadingThread:
    """Runs coroutines for those on other loops."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="penstock-console-reading", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs it there; cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for it here. Whoever stops waiting stops the work."""
        return await asyncio.wrap_future(self.begin(work))

    def stop(self) -> None:
        """Ends everything that is under way."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
