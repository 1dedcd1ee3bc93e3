"""The addresses a node listens on, and those it tells others: `listeners` and `advertised.listeners`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from penstock.model.errors import PenstockError
from penstock.model.ports import Net
from penstock.server.connection import Connection
from penstock.server.context import ListenerInfo
from penstock.server.reception import Reception, Settings

_log = logging.getLogger(__name__)

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
WILDCARDS = ("", "0.0.0.0", "::")


class BadListeners(PenstockError):
    """The listener settings contradict themselves or ask for what this node cannot do."""


class Endpoint(NamedTuple):
    """`NAME://host:port`. An empty host means every interface, port 0 a free one."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def wildcard(self) -> bool:
        return self.host in WILDCARDS

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Bound(Protocol):
    """What `Net.listen` gives."""

    host: str
    port: int

    def close(self) -> None: ...


class Listener:
    """One listening address."""

    __slots__ = ("_bound", "accepted", "endpoint", "info", "reception")

    def __init__(self, endpoint: Endpoint, reception: Reception) -> None:
        self.endpoint = endpoint
        self.reception = reception
        self.info = ListenerInfo(*endpoint)
        self.accepted = 0
        self._bound: Bound | None = None

    async def open(self, net: Net) -> None:
        """Binds the address; OSError, naming it, when that fails."""
        self._bound = await net.listen(self.endpoint.host, self.endpoint.port, self._accept)
        self.info = self.info._replace(port=self._bound.port)
        _log.info("listening on %s", self.endpoint._replace(port=self._bound.port))

    def close(self) -> None:
        if self._bound is not None:
            self._bound.close()
            self._bound = None

    def _accept(self) -> Connection:
        self.accepted += 1
        return Connection(self.reception, self.info)


class Listeners:
    """All listeners of a node."""

    __slots__ = ("_listeners", "_settings", "reception")

    def __init__(self, settings: Settings, reception: Reception) -> None:
        """Raises `BadListeners` at once, before anything is bound."""
        self._settings = settings
        self.reception = reception
        self._listeners = [Listener(endpoint, reception) for endpoint in endpoints_of(settings)]

    def __iter__(self) -> Any:
        return iter(self._listeners)

    async def open(self, net: Net) -> None:
        """Opens all or none."""
        try:
            for listener in self._listeners:
                await listener.open(net)
        except BaseException:
            self.stop_accepting()
            raise

    def stop_accepting(self) -> None:
        for listener in self._listeners:
            listener.close()

    async def close(self, drain_ms: float) -> None:
        """Accepts nobody, answers what runs, then cuts the rest."""
        self.stop_accepting()
        await self.reception.close(drain_ms)

    def advertised(self, fallback_host: str) -> list[Endpoint]:
        """What others are told, by listener. Ports are the bound ones; `fallback_host` stands in for a wildcard."""
        told = {endpoint.name: endpoint for endpoint in advertised_of(self._settings)}
        found = []
        for listener in self._listeners:
            endpoint = told.get(listener.info.name)
            if endpoint is not None:
                host = fallback_host if endpoint.wildcard else endpoint.host
                found.append(endpoint._replace(host=host, port=endpoint.port or listener.info.port))
        return found


def endpoints_of(settings: Settings) -> list[Endpoint]:
    """The endpoints to bind; `BadListeners` when they cannot be."""
    found = parse_endpoints("listeners", settings["listeners"], protocol_map(settings))
    for endpoint in found:
        if endpoint.security_protocol != "PLAINTEXT":
            raise BadListeners(
                f"listener {endpoint} wants {endpoint.security_protocol}; this node can only listen in PLAINTEXT. "
                "Change listeners or listener.security.protocol.map."
            )
    ports = [endpoint.port for endpoint in found if endpoint.port]
    if len(set(ports)) != len(ports) and len({(e.host, e.port) for e in found}) != len(found):
        raise BadListeners(f"listeners {settings['listeners']}: two of them share an address")
    return found


def advertised_of(settings: Settings) -> list[Endpoint]:
    """The endpoints as `advertised.listeners` gives them, or `listeners` where it is not set."""
    protocols = protocol_map(settings)
    text = settings["advertised.listeners"]
    if not text:
        return parse_endpoints("listeners", settings["listeners"], protocols)
    found = parse_endpoints("advertised.listeners", text, protocols)
    for endpoint in found:
        if endpoint.wildcard:
            raise BadListeners(f"advertised.listeners {endpoint}: clients cannot connect to a wildcard; name a host")
    names = {endpoint.name for endpoint in parse_endpoints("listeners", settings["listeners"], protocols)}
    for endpoint in found:
        if endpoint.name not in names:
            raise BadListeners(f"advertised.listeners names {endpoint.name}, which is not in listeners")
    return found


def protocol_map(settings: Settings) -> dict[str, str]:
    """Listener name → security protocol. A controller listener that the map does not name is plaintext."""
    found: dict[str, str] = {}
    given = settings["listener.security.protocol.map"]
    for entry in _entries(given):
        name, colon, protocol = entry.partition(":")
        if not colon or protocol.strip().upper() not in PROTOCOLS:
            raise BadListeners(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}"
            )
        found[name.strip().upper()] = protocol.strip().upper()
    for name in _entries(settings["controller.listener.names"]):
        found.setdefault(name.upper(), "PLAINTEXT")
    return found


def parse_endpoints(setting: str, text: str | Iterable[str], protocols: Mapping[str, str]) -> list[Endpoint]:
    """Reads `NAME://host:port,...`; hosts may be empty, IPv6 ones stand in brackets."""
    found: list[Endpoint] = []
    for entry in _entries(text):
        name, separator, address = entry.partition("://")
        host, colon, port = address.rpartition(":")
        name = name.upper()
        if not separator or not colon or not port.isdecimal() or int(port) > 65_535:
            raise BadListeners(f"{setting}: {entry!r} is not NAME://host:port")
        if name not in protocols:
            raise BadListeners(f"{setting}: {name} has no security protocol in listener.security.protocol.map")
        if name in (endpoint.name for endpoint in found):
            raise BadListeners(f"{setting}: the name {name} is there twice")
        found.append(Endpoint(name, host.removeprefix("[").removesuffix("]"), int(port), protocols[name]))
    if not found:
        raise BadListeners(f"{setting} is empty; for example PLAINTEXT://localhost:9092")
    return found


def _entries(text: str | Iterable[str] | None) -> list[str]:
    entries = text.split(",") if isinstance(text, str) else list(text or ())
    return [entry.strip() for entry in entries if entry.strip()]
