"""A process that searches for the console: unpacking and looking through records must not hold pages and tails.

Orders come on standard input and what is found goes out on standard output, as frames: four bytes of length, then JSON.
Logins come the same way, so no list of processes shows them. It ends when its input does: it never outlives a console.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, BinaryIO, Final

import msgspec

from penstock.console.messages.searching import SearchOrder, search

FRAME_MAX: Final = 64 << 20
NICER: Final = 5
"""Brokers and the console come first where they share a machine with searches."""


class Order(msgspec.Struct):
    """Begin a search, or end it: then `search` is null."""

    id: int
    keywords: dict[str, Any]
    search: SearchOrder | None


class Word(msgspec.Struct):
    """What a search tells; null when it has told all."""

    id: int
    told: dict[str, Any] | None


def framed(message: msgspec.Struct) -> bytes:
    data = msgspec.json.encode(message)
    return len(data).to_bytes(4, "big") + data


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """None at the end."""
    try:
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > FRAME_MAX:
            return None
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def _obey(orders: asyncio.StreamReader, answers: BinaryIO) -> None:
    running: dict[int, asyncio.Task[None]] = {}

    def say(word: Word) -> None:
        answers.write(framed(word))
        answers.flush()

    async def run(order: Order, wanted: SearchOrder) -> None:
        try:
            await search(order.keywords, wanted, lambda told: say(Word(order.id, told)))
        finally:
            running.pop(order.id, None)
            say(Word(order.id, None))

    while (frame := await read_frame(orders)) is not None:
        order = msgspec.json.decode(frame, type=Order)
        if order.search is not None:
            running[order.id] = asyncio.create_task(run(order, order.search))
        elif order.id in running:
            running[order.id].cancel()


async def _main() -> None:
    loop, orders = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    # What is told is little and bounded, and the console reads it at once: writing it waits for nobody.
    await _obey(orders, sys.stdout.buffer)
    # Nobody is left to hear how searches end.
    os._exit(0)


if __name__ == "__main__":
    os.nice(NICER)
    asyncio.run(_main())
