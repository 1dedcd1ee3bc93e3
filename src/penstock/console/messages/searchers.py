"""The processes that search: started when somebody searches, ended when nobody has for a minute.

A search in a thread of the console's would share one interpreter with pages and tails. As a process it has its own, a
lower priority, and its memory ends with it; that costs 0.2 s of a processor at the first search, and 28 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from penstock.console.failures import Declined
from penstock.console.messages.searcher import Order, Word, framed, read_frame
from penstock.console.messages.searching import SearchOrder, Tell, told

PROCESSES_MAX: Final = 2
IDLE_S: Final = 60.0
END_WITHIN_S: Final = 2.0


@dataclass(slots=True)
class _Search:
    order: SearchOrder
    tell: Tell
    ended: asyncio.Future[None]
    last: dict[str, Any] | None = None


class _Process:
    """One of them, with the searches that it carries out."""

    def __init__(self, process: asyncio.subprocess.Process, rest: Callable[[], None]) -> None:
        """`rest` is told when a search has ended."""
        self._process, self._rest, self.searches = process, rest, dict[int, _Search]()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, rest: Callable[[], None]) -> _Process:
        words, pipe = (sys.executable, "-m", "penstock.console.messages.searcher"), asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe), rest)

    @property
    def alive(self) -> bool:
        return not self._listening.done()

    def send(self, order: Order) -> None:
        assert self._process.stdin is not None, "it was started with one"
        self._process.stdin.write(framed(order))

    async def end(self) -> None:
        assert self._process.stdin is not None, "it was started with one"
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_WITHIN_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening

    async def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with one"
        while (frame := await read_frame(self._process.stdout)) is not None:
            word = msgspec.json.decode(frame, type=Word)
            search = self.searches.get(word.id)
            if search is None:
                continue
            if word.told is None:
                del self.searches[word.id]
                _set(search.ended)
                self._rest()
            else:
                search.last = word.told
                search.tell(word.told)
        self._break_off()

    def _break_off(self) -> None:
        """It is gone. What it had found stays found, and each can go on from where it stood."""
        searches, self.searches = list(self.searches.values()), {}
        why = Declined(500, "failed", "the process that searched has ended", "go on from where it stopped")
        for search in searches:
            order, last = search.order, search.last
            positions = {int(each): int(offset) for each, offset in last["positions"].items()} if last else order.froms
            search.tell({**(last or {}), **_broken(positions, order, last, why)})
            _set(search.ended)
        self._rest()


def _broken(
    positions: Mapping[int, int], order: SearchOrder, last: Mapping[str, Any] | None, why: Declined
) -> dict[str, Any]:
    kept = {name: last[name] for name in ("found", "scanned", "bytes", "elapsed_s", "unreadable")} if last else {}
    return told(positions, order.tos, "stopped", "failed", error=why.told(), **kept)


class Searchers:
    """Lives on the loop that serves browsers."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._processes: list[_Process] = []
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def search(self, keywords: Mapping[str, Any], order: SearchOrder, tell: Tell) -> None:
        """As `searching.search`, in another process."""
        try:
            process = await self._least_busy()
        except Declined as why:
            tell(told(order.froms, order.tos, "stopped", "failed", error=why.told()))
            return
        number, ended = next(self._numbers), asyncio.get_running_loop().create_future()
        process.searches[number] = _Search(order, tell, ended)
        process.send(Order(number, dict(keywords), order))
        try:
            await ended
        except asyncio.CancelledError:
            # Its last word, how far it came, is still passed on.
            process.send(Order(number, {}, None))
            raise

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._end_all()
        for ending in list(self._ending):
            with contextlib.suppress(ProcessLookupError):
                await ending

    async def _least_busy(self) -> _Process:
        async with self._starting:
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            self._processes = [each for each in self._processes if each.alive]
            idle = [each for each in self._processes if not each.searches]
            if not idle and len(self._processes) < PROCESSES_MAX:
                try:
                    self._processes.append(await _Process.start(self._rest))
                except OSError as failure:
                    message = f"no process can be started to search: {failure.strerror}"
                    raise Declined(503, "failed", message, "try again", retry_after_s=5) from None
            return min(self._processes, key=lambda each: len(each.searches))

    def _rest(self) -> None:
        if not any(each.searches for each in self._processes) and self._idle is None:
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end_all)

    def _end_all(self) -> None:
        self._idle = None
        processes, self._processes = self._processes, []
        for process in processes:
            ending = asyncio.create_task(process.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


def _set(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
