"""TLS by hand over a plain socket, so that what is sent can be held back, cut and changed, and costs little memory."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable

READ_BYTES = 16 << 10

Change = Callable[[bytes], bytes]


def as_it_is(data: bytes) -> bytes:
    return data


def distrusting_nobody() -> ssl.SSLContext:
    """Whoever attacks does not care whom."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Gone(Exception):
    """The node has hung up."""


class RawTls:
    """One connection. `from_host` is the address that it comes from, of which the loopback has many."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def connect(self, port: int, from_host: str) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(from_host, 0), limit=READ_BYTES
        )

    def hello(self) -> bytes:
        """The first bytes of a client, which are not sent by that."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._out.read()

    async def send_bytes(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (ConnectionError, RuntimeError):  # uvloop says the latter of a transport that is closed
            raise Gone from None

    async def shake(self, change_last: Change = as_it_is) -> None:
        """The rest of a handshake whose hello was sent; what we send last may be changed."""
        while True:
            try:
                self._tls.do_handshake()
                await self.send_bytes(change_last(self._out.read()))
                return
            except ssl.SSLWantReadError:
                await self.send_bytes(self._out.read())
                self._in.write(await self.read_bytes())
            except ssl.SSLError:
                raise Gone from None

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self.send_bytes(self._out.read())

    async def frame(self) -> bytes:
        """A reply without its size; `Gone` when there is none."""
        size = int.from_bytes(await self._read(4), "big")
        return await self._read(size)

    async def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            try:
                got = self._tls.read(count - len(found))
            except ssl.SSLWantReadError:
                self._in.write(await self.read_bytes())
                continue
            except ssl.SSLError:
                raise Gone from None
            if not got:
                raise Gone
            found += got
        return found

    async def read_bytes(self) -> bytes:
        try:
            data = await self._reader.read(READ_BYTES)
        except ConnectionError:
            raise Gone from None
        if not data:
            raise Gone
        return data

    async def until_gone(self) -> None:
        with contextlib.suppress(Gone):
            while True:
                await self.read_bytes()

    def close(self) -> None:
        if hasattr(self, "_writer"):
            self._writer.transport.abort()
