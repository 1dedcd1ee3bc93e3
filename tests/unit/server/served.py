"""A reception with handlers of the test's own, behind a real listener, and clients that speak in frames."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

from penstock.model.config import BrokerSettings
from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.registry import APIS
from penstock.protocol.wire import schema_of
from penstock.server.doors import Handler, Services
from penstock.server.loops.ports import SystemClock, ThreadOffload
from penstock.server.reception.authorize import AllowAll
from penstock.server.reception.connection import Connection
from penstock.server.reception.dispatch import Dispatch
from penstock.server.reception.listener import Listeners
from penstock.server.reception.quotas import UNLIMITED, Quotas
from penstock.server.reception.reception import Reception
from penstock.server.reception.strangers import Strangers
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.unit.transport.pairs import framed, on_loop

__all__ = ["Client", "World", "framed", "on_loop", "serving", "settings_with", "until"]

PROPERTIES = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}


def settings_with(**changes: str) -> BrokerSettings:
    """Plain settings and changes; underscores in names stand for dots."""
    return BrokerSettings.load({**PROPERTIES, **{name.replace("_", "."): value for name, value in changes.items()}})


class Client:
    """A socket that asks in frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, message: object, version: int, correlation_id: int = 1, client_id: str | None = "c") -> None:
        await self.send(encode_request(correlation_id, client_id, message, version))

    async def frame(self) -> bytes:
        async with asyncio.timeout(within(10)):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def reply(self, message: object, version: int) -> tuple[int, Any]:
        """(correlation id, reply) of the next frame, read as the answer to a request like `message`."""
        return decode_response(await self.frame(), schema_of(message.__class__).key, version)

    def reset(self) -> None:
        """Goes without a word: a linger of zero makes the close a reset."""
        peer = self.writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def hung_up(self) -> bool:
        """Whether the node closes the connection without a further byte."""
        try:
            async with asyncio.timeout(within(10)):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True


class World:
    """One reception and its listener."""

    def __init__(self, reception: Reception, listeners: Listeners, dispatch: Dispatch) -> None:
        self.reception, self.listeners, self.dispatch = reception, listeners, dispatch
        self.clients: list[Client] = []

    @property
    def port(self) -> int:
        return next(iter(self.listeners)).info.port

    @property
    def strangers(self) -> Strangers:
        entrance = next(iter(self.listeners)).entrance
        assert entrance is not None
        return entrance.strangers

    @property
    def connection(self) -> Connection:
        (only,) = self.reception.connections
        assert isinstance(only, Connection)
        return only

    async def client(self, limit: int = 1 << 16, tls: ssl.SSLContext | None = None) -> Client:
        standing = len(self.reception.connections)
        client = await self.stranger(limit, tls)
        await until(lambda: len(self.reception.connections) > standing)
        return client

    async def stranger(self, limit: int = 1 << 16, tls: ssl.SSLContext | None = None) -> Client:
        """A client of whom nothing is known yet: it may be refused."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, limit=limit, ssl=tls))
        self.clients.append(client)
        return client


@contextlib.asynccontextmanager
async def serving(
    handlers: dict[str, Handler] | None = None,
    *,
    quotas: Quotas = UNLIMITED,
    served: tuple[str, ...] = (),
    change: Callable[[Services], None] | None = None,
    **settings: str,
) -> AsyncIterator[World]:
    loop = asyncio.get_running_loop()
    loaded = settings_with(**settings)
    node = cast(Services, SimpleNamespace(settings=loaded, clock=SystemClock(), authorizer=AllowAll(), audit=None))
    if change is not None:
        change(node)
    names = served or tuple(api.name for api in APIS.values() if handlers and api.name in handlers)
    dispatch = Dispatch(names, handlers=handlers)
    node.apis = dispatch
    offload = ThreadOffload()
    reception = Reception(loop, node, dispatch, quotas=quotas, offload=offload)
    listeners = Listeners(loaded)
    await listeners.open(AsyncioNet(loop))
    await listeners.serve(reception)
    world = World(reception, listeners, dispatch)
    try:
        yield world
    finally:
        listeners.stop_accepting()
        for client in world.clients:
            client.writer.transport.abort()
        await reception.close(drain_ms=0.0)
        await until(lambda: not reception.connections)
        for client in world.clients:
            with contextlib.suppress(OSError):
                await client.writer.wait_closed()
        offload.close()
