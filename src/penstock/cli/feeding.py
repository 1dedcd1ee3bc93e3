"""Standard input as records for an event loop: a thread reads and parses, the loop is given lists.

A list goes over whenever reading would wait for more input, so that a line typed at a terminal is sent at once and a
file is sent in large pieces.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeAlias

from penstock.operations.records.reading import InputRecord, Stream

LIST_RECORDS = 1_000
LISTS_WAITING = 16

Parse: TypeAlias = Callable[[Stream], Iterator[InputRecord]]


class Feed:
    """The records of a file descriptor. Iterate once; what the parser raises is raised there."""

    def __init__(self, descriptor: int, parse: Parse) -> None:
        self._descriptor, self._parse = descriptor, parse
        self._loop = asyncio.get_running_loop()
        self._lists: asyncio.Queue[list[InputRecord] | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(LISTS_WAITING)
        self._held: list[InputRecord] = []
        self._dropped = False

    async def lists(self) -> AsyncIterator[list[InputRecord]]:
        # A daemon: it may wait in a read for ever, and must not keep an interrupted command from ending.
        threading.Thread(target=self._run, name="penstock-input", daemon=True).start()
        try:
            while (found := await self._lists.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
                self._room.release()
        finally:
            self._dropped = True
            self._room.release(LISTS_WAITING)

    # The thread.

    def read1(self, size: int = -1, /) -> bytes:
        self._hand_over()
        # Not through sys.stdin: its lock would be held while we wait, and the interpreter could not end.
        return os.read(self._descriptor, size)

    def _run(self) -> None:
        end: BaseException | None = None
        try:
            for record in self._parse(self):
                self._held.append(record)
                if len(self._held) >= LIST_RECORDS:
                    self._hand_over()
                if self._dropped:
                    return
        except Exception as failure:
            end = failure
        self._hand_over()
        self._put(end)

    def _hand_over(self) -> None:
        if self._held and not self._dropped:
            held, self._held = self._held, []
            self._room.acquire()
            self._put(held)

    def _put(self, item: list[InputRecord] | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._lists.put_nowait, item)
        except RuntimeError:  # the loop has ended
            self._dropped = True
