"""How much an input holds while it is maltreated, and whether it still does its work."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from penstock.agent.settings.kinds import kind_of
from tests.patience import until, within
from tests.unit.agent.listening.channels import (
    DEADLINE_S,
    HandChannel,
    environment,
    no_errors_logged,
    port_of,
    read_table,
    running,
)

MEMORY_BYTES = 16 << 20
HELD_BYTES_MAX = MEMORY_BYTES
"""Of an agent that may hold 16 MB: an input's own buffers stay below that, whatever is sent."""


class Watched:
    """An input under attack. Ask `alive` whenever a good message should get through."""

    def __init__(self, kind: str, made: Any, channel: HandChannel, seen: list[int]) -> None:
        self.kind, self.made, self.channel, self._seen = kind, made, channel, seen
        self._numbers = itertools.count()
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def held_bytes_max(self) -> int:
        return max(self._seen, default=0)

    def port(self, scheme: str = "") -> int:
        return port_of(self.made, scheme)

    async def connect(self, scheme: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self.port(scheme or ("tcp" if self.kind == "syslog" else ""))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self._writers.append(writer)
        return reader, writer

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def alive(self) -> None:
        """A good message of everyone arrives."""
        word = b"still alive %d" % next(self._numbers)
        senders: dict[str, list[Callable[[bytes], Any]]] = {
            "syslog": [self._by_datagram, self._by_stream],
            "tcp": [self._by_stream],
            "http": [self._by_request],
        }
        for send in senders[self.kind]:
            self.channel.portions.clear()
            await send(word)
            await until(lambda: any(word in value for value in self.channel.values))
        self.channel.portions.clear()

    async def _by_datagram(self, word: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"<13>Nov 16 10:00:00 web app: " + word, ("127.0.0.1", self.port("udp")))

    async def _by_stream(self, word: bytes) -> None:
        _, writer = await self.connect()
        writer.write(b"<13>Nov 16 10:00:00 web app: " + word + b"\n")
        await writer.drain()
        writer.close()

    async def _by_request(self, word: bytes) -> None:
        answer = await self.ask(b'{"message": "' + word + b'"}')
        assert answer.startswith(b"HTTP/1.1 200"), answer

    async def ask(self, body: bytes, *headers: bytes) -> bytes:
        given = [b"content-length: %d" % len(body), b"content-type: application/json", b"connection: close", *headers]
        reader, writer = await self.connect()
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\n" + b"\r\n".join(given) + b"\r\n\r\n" + body)
        async with asyncio.timeout(within(DEADLINE_S)):
            answer = await reader.read()
        writer.close()
        return answer


@contextlib.asynccontextmanager
async def watched(kind: str, text: str = "", folder: Path | None = None) -> AsyncIterator[Watched]:
    """Runs it; afterwards nobody has logged an exception, and it never held more than it may."""
    listen = {
        "syslog": '["udp://127.0.0.1:0", "tcp://127.0.0.1:0"]',
        "tcp": '"127.0.0.1:0"',
        "http": '"127.0.0.1:0"',
    }[kind]
    module = kind_of(kind)
    whole = text if "listen" in text else f"listen = {listen}\n{text}"
    settings, mistakes = read_table(whole, module.read, folder)
    assert not mistakes
    channel = HandChannel()
    made: Any = module.make(settings, channel, environment(MEMORY_BYTES))
    seen: list[int] = [0]

    async def look() -> None:
        while True:
            seen[0] = max(seen[0], made.held_bytes)
            # A soak's portions are of no interest.
            del channel.portions[:-200]
            await asyncio.sleep(0.0005)

    with no_errors_logged():
        async with running(made):
            looking = asyncio.create_task(look())
            found = Watched(kind, made, channel, seen)
            try:
                yield found
                await found.alive()
            finally:
                found.hang_up()
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
        assert seen[0] <= HELD_BYTES_MAX
        assert made.held_bytes == 0
