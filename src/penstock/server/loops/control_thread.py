"""A loop of its own for the control part of a node, in a thread of its own: no disk of the broker holds it up."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

import uvloop

from penstock.model.ports import Ports
from penstock.server.loops.crossing import two_loops
from penstock.server.loops.hang_watch import path_of

NAME: Final = "penstock-control"
END_WITHIN_S: Final = 10.0
INNERMOST: Final = 6
"""How deep a call to the system may lie below the code that knows its file."""


class ControlThread:
    """Runs from when it is made until `close`. Made on the loop of the rest of the node."""

    def __init__(self, random: Random, make_ports: Callable[[asyncio.AbstractEventLoop], Ports]) -> None:
        self._loop = uvloop.new_event_loop()
        self.ports, self.random = make_ports(self._loop), random
        self.sides = two_loops(
            to_control=self.loop().call_soon_threadsafe, to_data=asyncio.get_running_loop().call_soon_threadsafe
        )
        self._data_thread = threading.get_ident()
        # A daemon, so that a loop that hangs does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def on_uncaught(self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]) -> None:
        """The handler is called in the thread of this loop."""
        self._loop.set_exception_handler(handler)

    def held_at(self) -> str | None:
        """Read from the stack of the other thread: whoever is about to touch a file need not say so before."""
        frame = sys._current_frames().get(self._data_thread)
        for _ in range(INNERMOST):
            if frame is None:
                return None
            seen = frame.f_locals
            if (path := path_of(seen.get("self"), 1) or path_of(seen.get("path"))) is not None:
                return path
            frame = frame.f_back
        return None

    def run(self, work: Callable[[], None]) -> None:
        done = threading.Event()

        def do() -> None:
            try:
                work()
            finally:
                done.set()

        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(do)
            done.wait(END_WITHIN_S)

    def close(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(END_WITHIN_S)

    def _run(self) -> None:
        # The alarm of the other loop's watch is for the thread that it watches.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            _cancel_all(self._loop)
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """What still waits is told that it waits in vain, as `asyncio.run` does it."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
