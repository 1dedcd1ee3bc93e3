"""Keeps one input running: starts it again when it fails, later each time, and tells why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from penstock.agent.environment import monotonic_ms
from penstock.agent.inputs.input import Input, InputStatus
from penstock.agent.settings.model import InputSettings
from penstock.agent.telling import Teller
from penstock.client.retry import Backoff

log = logging.getLogger("penstock.agent")

RESTART_FIRST_MS: Final = 1_000
RESTART_LONGEST_MS: Final = 60_000
WELL_AFTER_MS: Final = 60_000
"""An input that ran so long has got over what made it fail before."""
RETURN_WITHIN_S: Final = 10.0
"""How long `run` may take to return after `stop`."""

STARTING, RUNNING, WAITING, FINISHED, STOPPED = "starting", "running", "waiting", "finished", "stopped"


class SupervisedInput:
    """An input and its restarts. `make` makes a new one; `flushed` waits until what the old one put is safe."""

    def __init__(
        self,
        settings: InputSettings,
        make: Callable[[], Input],
        *,
        flushed: Callable[[], Coroutine[Any, Any, object]],
        teller: Teller,
        finished: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
    ) -> None:
        self.settings = settings
        self.state = STARTING
        self.restarts = 0
        self.failure = ""
        self._make, self._flushed, self._teller, self._finished = make, flushed, teller, finished
        self._backoff = backoff or Backoff(RESTART_FIRST_MS, RESTART_LONGEST_MS)
        self._input: Input | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._last_status: InputStatus | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._supervise())

    async def stop(self) -> None:
        """Takes in no more; returns when no further portion will come."""
        self._stopping.set()
        if self._input is not None:
            await self._quietly(self._input.stop(), "stop")
        if self._task is not None:
            await asyncio.wait([self._task], timeout=RETURN_WITHIN_S)
            if not self._task.done():
                self._teller.wrong(f"input {self.settings.name} does not end; it is cut off")
                self._task.cancel()
                await asyncio.wait([self._task])
        if self.state != FINISHED:
            self.state = STOPPED

    async def close(self) -> None:
        """The last checkpoints. After `stop`, and after what it put is flushed as far as that goes."""
        if self._input is not None:
            made, self._input = self._input, None
            self._last_status = made.status()
            await self._quietly(made.close(), "close")

    async def _supervise(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began_ms = monotonic_ms()
            try:
                self._input = self._make()
                self.state = RUNNING
                await self._input.run()
            except Exception as wrong:
                log.debug("input %s", self.settings.name, exc_info=True)
                failures = 1 if monotonic_ms() - began_ms >= WELL_AFTER_MS else failures + 1
                self.failure = str(wrong) or type(wrong).__name__
                await self._rest(failures)
                continue
            if not self._stopping.is_set():
                self.state = FINISHED
                self._finished()
            return

    async def _rest(self, failures: int) -> None:
        """Ends what failed, in order, and waits before the next try."""
        if self._stopping.is_set():
            return
        self.state = WAITING
        delay_s = self._backoff.delay_ms(failures) / 1000
        name = self.settings.name
        self._teller.wrong(f"input {name} failed: {self.failure}; it is started again in {delay_s:.0f} s", about=name)
        if self._input is not None:
            await self._quietly(self._input.stop(), "stop")
            await self._flushed_or_stopping()
            await self.close()
        try:
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        except TimeoutError:
            self.restarts += 1

    async def _flushed_or_stopping(self) -> None:
        """A new one would read again what the old one has put and nobody has acknowledged yet."""
        waits = [asyncio.ensure_future(self._flushed()), asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _quietly(self, work: Awaitable[None], what: str) -> None:
        try:
            await work
        except Exception as wrong:
            self._teller.wrong(f"input {self.settings.name} failed to {what}: {wrong}")
            log.debug("input %s", self.settings.name, exc_info=True)

    def status(self, *, details: bool) -> InputStatus:
        if self._input is not None:
            found = self._input.status(details=details)
        else:
            found = self._last_status or InputStatus(kind=self.settings.kind)
        if self.state == WAITING:
            found.words, found.last_error = f"failed, and is started again: {self.failure}", self.failure
        return found
