"""Talking to brokers from code that cannot await: one private loop per process, run in the calling thread.

Spark calls sources and sinks synchronously and keeps their processes from task to task. So clients are kept here too,
by their settings: a task begins with connections that stand. Nothing runs between two calls; what arrives meanwhile
waits in the sockets.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from penstock.client.admin import Admin
    from penstock.client.producer import Producer
    from penstock.client.spans import SpanReader

T = TypeVar("T")

KEPT_CLIENTS: Final = 8
"""Of each kind; a process that talks to more clusters than that dials anew."""

_CLOSING_S: Final = 5.0


class _Client(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Client)


class Dialogue:
    """Runs coroutines to their end for callers that cannot await. Threads may share one: they take turns."""

    def __init__(self) -> None:
        import uvloop

        self._loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._turn = threading.Lock()
        self._clients: dict[str, OrderedDict[tuple[tuple[str, str], ...], Any]] = {}
        self.closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, or what it raises."""
        if asyncio._get_running_loop() is None:
            return self._run(work)
        # A notebook runs a loop in this very thread, and a thread has one running loop at most.
        with ThreadPoolExecutor(1, thread_name_prefix="penstock-dialogue") as elsewhere:
            return elsewhere.submit(self._run, work).result()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._turn:
            if self.closed:
                work.close()
                raise RuntimeError("the dialogue is closed")
            return self._loop.run_until_complete(work)

    def iterate(self, source: AsyncIterator[T]) -> Generator[T, None, None]:
        """The items of `source`; the loop runs only while the next one is waited for."""
        try:
            while True:
                try:
                    item = self.run(_next(source))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            ending = getattr(source, "aclose", None)
            if ending is not None and not self.closed:
                self.run(_awaited(ending()))

    def kept(self, kind: str, settings: Mapping[str, str], make: Callable[[], C]) -> C:
        """The client of these settings, made on the loop when there is none yet. Least used ones are closed."""
        held = self._clients.setdefault(kind, OrderedDict())
        key = tuple(sorted(settings.items()))
        found: C | None = held.get(key)
        if found is None:
            found = held[key] = self.run(_made(make))
        held.move_to_end(key)
        while len(held) > KEPT_CLIENTS:
            self._close(held.popitem(last=False)[1])
        return found

    def drop(self, client: _Client) -> None:
        """Closes a client that does not work any more; the next who asks for its settings gets another."""
        for held in self._clients.values():
            for key in [key for key, found in held.items() if found is client]:
                del held[key]
        self._close(client)

    def close(self) -> None:
        """Closes the clients and the loop. Closing twice is fine."""
        if self.closed:
            return
        for held in self._clients.values():
            while held:
                self._close(held.popitem()[1])
        with self._turn:
            self.closed = True
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _close(self, client: _Client) -> None:
        with suppress(Exception):  # it is given up in any case
            self.run(_in_time(client.close(), _CLOSING_S))


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def _in_time(work: Awaitable[T], seconds: float) -> T:
    async with asyncio.timeout(seconds):
        return await work


async def _made(make: Callable[[], T]) -> T:
    """Clients take the loop that runs when they are made or first used."""
    return make()


_of_process: dict[int, Dialogue] = {}


def for_process() -> Dialogue:
    """The dialogue of this process. Workers are forked: what a parent had is not the child's to use, nor to close."""
    pid = os.getpid()
    found = _of_process.get(pid)
    if found is None or found.closed:
        found = _of_process[pid] = Dialogue()
    return found


def reader_for(settings: Mapping[str, str]) -> SpanReader:
    """A reader with these consumer settings (`bootstrap_servers` and on), kept in this process."""
    from penstock.client.spans import SpanReader

    return for_process().kept("reader", settings, lambda: SpanReader(**_keywords(settings)))


def admin_for(settings: Mapping[str, str]) -> Admin:
    """An Admin with these settings, kept in this process."""
    from penstock.client.admin import Admin

    return for_process().kept("admin", settings, lambda: Admin(**_keywords(settings)))


def producer_for(settings: Mapping[str, str]) -> Producer:
    """A producer with these settings, kept in this process."""
    from penstock.client.producer import Producer

    return for_process().kept("producer", settings, lambda: Producer(**_keywords(settings)))


def _keywords(settings: Mapping[str, str]) -> dict[str, Any]:
    """Kafka's names and ours alike."""
    return {name.replace(".", "_"): value for name, value in settings.items()}
