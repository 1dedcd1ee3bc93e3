"""What all connections of a node share: the doors behind them, the limits on them, and who they are."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from penstock.server.logs import Sparing
from penstock.server.quotas import UNLIMITED, Quotas
from penstock.transport.idle import IdleWheel
from penstock.transport.intake import Intake

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.server.connection import Connection
    from penstock.server.context import Services
    from penstock.server.dispatch import Dispatch

_log = logging.getLogger(__name__)


class Settings(Protocol):
    """The broker's settings by Kafka's names; values are read when they are needed, so changes take effect."""

    def __getitem__(self, name: str, /) -> Any: ...


class Reception:
    """Admits connections, knows all that stand, and sees them out. One per node."""

    __slots__ = (
        "_by_host",
        "_drained",
        "_numbers",
        "_settings",
        "accepted",
        "clock",
        "closed",
        "connections",
        "dispatch",
        "draining",
        "frame_bytes_max",
        "intake",
        "loop",
        "malformed",
        "node",
        "quotas",
        "refused",
        "request_timeout_ms",
        "sparing",
        "wheel",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        node: Services,
        dispatch: Dispatch,
        *,
        settings: Settings,
        clock: Clock,
        quotas: Quotas = UNLIMITED,
    ) -> None:
        self.loop = loop
        self.node = node
        self.dispatch = dispatch
        self.clock = clock
        self.quotas = quotas
        self._settings = settings
        self.frame_bytes_max: int = settings["socket.request.max.bytes"]
        self.request_timeout_ms: float = settings["request.timeout.ms"]
        self.intake = Intake(loop, budget_bytes=settings["queued.max.request.bytes"])
        self.wheel = IdleWheel(loop, self.intake, settings["connections.max.idle.ms"])
        self.wheel.start()
        self.sparing = Sparing(_log, clock=clock.monotonic_ms)
        self.connections: set[Connection] = set()
        self.accepted = 0
        self.closed = 0
        self.refused = 0  # turned away at the door, by a limit
        self.malformed = 0  # closed because of what they sent
        self.draining = False
        self._by_host: dict[str, int] = {}
        self._numbers = 0
        self._drained: asyncio.Future[None] | None = None

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def admit(self, connection: Connection) -> bool:
        """Counts a new connection, or turns it away. Kafka lets the surplus wait in the backlog; we say so at once."""
        host = connection.client_host
        why = self._objection(host)
        if why:
            self.refused += 1
            self.sparing.warning("refused " + host, "a connection from %s was refused: %s", host, why)
            return False
        self.accepted += 1
        self.connections.add(connection)
        self._by_host[host] = self._by_host.get(host, 0) + 1
        self.wheel.add(connection)
        return True

    def dismiss(self, connection: Connection) -> None:
        """Forgets a connection that is gone; nothing happens when it was never admitted."""
        if connection not in self.connections:
            return
        self.closed += 1
        self.connections.discard(connection)
        self.wheel.discard(connection)
        host = connection.client_host
        left = self._by_host[host] - 1
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]
        if self._drained is not None and not self.connections and not self._drained.done():
            self._drained.set_result(None)

    def _objection(self, host: str) -> str:
        if self.draining:
            return "the node is shutting down"
        allowed = self._settings["max.connections"]
        if len(self.connections) >= allowed:
            return f"max.connections is {allowed}"
        allowed = self._per_host(host)
        if self._by_host.get(host, 0) >= allowed:
            return f"max.connections.per.ip is {allowed}"
        return ""

    def _per_host(self, host: str) -> int:
        overrides = self._settings["max.connections.per.ip.overrides"] or ""
        for entry in overrides.split(",") if isinstance(overrides, str) else overrides:
            name, _, allowed = entry.strip().rpartition(":")
            if name == host:
                return int(allowed)
        per_ip: int = self._settings["max.connections.per.ip"]
        return per_ip

    async def close(self, drain_ms: float) -> None:
        """Starts no further request, lets those that run be answered, and cuts what is left after `drain_ms`."""
        self.draining = True
        for connection in list(self.connections):
            connection.drain()
        if self.connections:
            self._drained = self.loop.create_future()
            try:
                async with asyncio.timeout(drain_ms / 1000):
                    await self._drained
            except TimeoutError:
                _log.info("%d connections did not finish within %.0f ms", len(self.connections), drain_ms)
            for connection in list(self.connections):
                connection.abort()
        self.wheel.stop()
