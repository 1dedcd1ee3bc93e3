"""The addresses a node listens on, and those it tells others: `listeners` and `advertised.listeners`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.model.config import BrokerSettings, Endpoint
from penstock.model.ports import Bound, Net
from penstock.server.doors import ListenerInfo
from penstock.server.reception.connection import Connection
from penstock.server.reception.entrance import BadListeners as BadListeners
from penstock.server.reception.entrance import Entrance, entrance_of
from penstock.server.reception.reception import Reception

if TYPE_CHECKING:
    from penstock.server.reception.tls_door import TlsDoor

_log = logging.getLogger("penstock.server.listener")


class Listener:
    """One listening address. `info` has the real port once it is open; nobody is accepted before `serve`."""

    __slots__ = ("_bound", "_reception", "accepted", "endpoint", "entrance", "info")

    def __init__(self, endpoint: Endpoint, *, for_controllers: bool = False, entrance: Entrance | None = None) -> None:
        self.endpoint = endpoint
        self.entrance = entrance
        self._reception: Reception | None = None
        self.info = ListenerInfo(*endpoint, for_controllers=for_controllers)
        self.accepted = 0
        self._bound: Bound | None = None

    async def open(self, net: Net) -> None:
        """Binds the address; OSError, naming it and its property, when that fails."""
        endpoint = self.endpoint
        try:
            self._bound = await net.listen(endpoint.host, endpoint.port, self._accept, serving=False)
        except OSError as cause:
            raise OSError(cause.errno, f"{cause.strerror} (listeners: {endpoint.name})") from cause
        self.info = self.info._replace(port=self._bound.port)

    async def serve(self, reception: Reception) -> None:
        """Lets in those who came meanwhile and whoever comes from now on."""
        assert self._bound is not None, "an address is bound before it serves"
        self._reception = reception
        if self.entrance is not None:
            self.entrance.open(reception)
        await self._bound.serve()
        _log.info("listening on %s", self.endpoint._replace(port=self._bound.port))

    def close(self) -> None:
        if self.entrance is not None:
            self.entrance.close()
        if self._bound is not None:
            self._bound.close()
            self._bound = None

    def _accept(self) -> asyncio.BaseProtocol:
        self.accepted += 1
        return self._connection() if self.entrance is None else self.entrance.accept(self._connection)

    def _connection(self) -> Connection:
        assert self._reception is not None, "nobody is accepted before there is a reception"
        return Connection(self._reception, self.info, self.entrance)


class Listeners:
    """All listeners of a node."""

    __slots__ = ("_listeners", "_settings")

    def __init__(self, settings: BrokerSettings) -> None:
        """Raises `BadListeners` at once, before anything is bound."""
        self._settings = settings
        controllers = settings.controller_listener_names
        self._listeners = [
            Listener(
                endpoint,
                for_controllers=endpoint.name in controllers,
                entrance=entrance_of(settings, endpoint),
            )
            for endpoint in endpoints_of(settings)
        ]

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._listeners)

    async def open(self, net: Net, *, for_controllers: bool | None = None) -> None:
        """Binds all of one kind, or of both, or none. Clients that come now wait in the backlog."""
        try:
            for listener in self._listeners:
                if for_controllers in (None, listener.info.for_controllers):
                    await listener.open(net)
        except BaseException:
            self.stop_accepting(for_controllers=for_controllers)
            raise

    def stop_accepting(self, *, for_controllers: bool | None = None) -> None:
        """Of one kind of listener, or of all."""
        for listener in self._listeners:
            if for_controllers in (None, listener.info.for_controllers):
                listener.close()

    async def serve(self, reception: Reception, *, for_controllers: bool | None = None) -> None:
        """Lets clients of one kind of listener in, or of all."""
        for listener in self._listeners:
            if for_controllers in (None, listener.info.for_controllers):
                await listener.serve(reception)

    def settings_changed(self, *, for_controllers: bool) -> None:
        """Dynamic configs changed: listeners of one kind look at their certificates."""
        for listener in self._listeners:
            entrance = listener.entrance
            if entrance is not None and listener.info.for_controllers == for_controllers:
                entrance.settings_changed()

    def tls_doors(self) -> dict[str, TlsDoor]:
        """Of the listeners that have TLS, by their names."""
        entrances = (each.entrance for each in self._listeners)
        return {each.name: each.tls for each in entrances if each is not None and each.tls is not None}

    def advertised(self, fallback_host: str) -> list[Endpoint]:
        """What clients and brokers are told. Ports 0 become the bound ones, wildcards become `fallback_host`."""
        bound = {listener.info.name: listener.info.port for listener in self._listeners}
        return [
            endpoint._replace(
                host=fallback_host if endpoint.wildcard else endpoint.host,
                port=endpoint.port or bound[endpoint.name],
            )
            for endpoint in self._settings.advertised_listeners
        ]


def endpoints_of(settings: BrokerSettings) -> tuple[Endpoint, ...]:
    """The endpoints to bind; `BadListeners` when they cannot be read."""
    try:
        return settings.listeners
    except ValueError as broken:
        raise BadListeners(f"listeners: {broken}") from None
