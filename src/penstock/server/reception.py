"""What all connections of a node share: the doors behind them, the limits on them, and who they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from penstock.server.logs import Sparing
from penstock.server.quotas import UNLIMITED, Quotas
from penstock.transport.idle import IdleWheel
from penstock.transport.intake import Intake

if TYPE_CHECKING:
    from penstock.server.connection import Connection
    from penstock.server.context import Services
    from penstock.server.dispatch import Dispatch

_log = logging.getLogger(__name__)

QUEUE_MAX = 50
"""How many connections may wait for a free place; as many as the backlog of a listening socket."""


class Reception:
    """Admits connections, knows all that stand, and sees them out. One for each kind of listener.

    `max.connections` makes the surplus wait: it is accepted but not served until a place is free. The listener between
    brokers is exempt from the limit of the whole broker, so that clients cannot cut a broker off its cluster.
    `max.connections.per.ip` turns the surplus away.
    """

    __slots__ = (
        "_by_host",
        "_by_listener",
        "_drained",
        "_numbers",
        "_queue",
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
        quotas: Quotas = UNLIMITED,
        numbers: Iterator[int] | None = None,
    ) -> None:
        """Limits are read from `node.settings` whenever a connection comes; sizes and times once, as in Kafka.

        `numbers` are those of its connections; a node with two receptions gives them different ones.
        """
        settings = node.settings
        self.loop = loop
        self.node = node
        self.dispatch = dispatch
        self.clock = node.clock
        self.quotas = quotas
        self.frame_bytes_max = settings.number("socket.request.max.bytes")
        self.request_timeout_ms = settings.number("request.timeout.ms")
        self.intake = Intake(loop, budget_bytes=settings.number("queued.max.request.bytes"))
        self.wheel = IdleWheel(loop, self.intake, settings.number("connections.max.idle.ms"))
        self.wheel.start()
        self.sparing = Sparing(_log, clock=node.clock.monotonic_ms)
        self.connections: dict[Connection, None] = {}  # in order of arrival: what is done to all has an order
        self.accepted = 0
        self.closed = 0
        self.refused = 0  # turned away at the door
        self.malformed = 0  # closed because of what they sent
        self.draining = False
        self._by_host: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        self._queue: dict[Connection, None] = {}  # those who wait for a place, in order
        self._numbers: Iterator[int] = numbers or count(1)
        self._drained: asyncio.Future[None] | None = None

    def number(self) -> int:
        return next(self._numbers)

    def arrive(self, connection: Connection) -> None:
        """Admits a new connection, lets it wait, or turns it away."""
        why = self._objection(connection.client_host)
        if not why and not self._has_place(connection):
            if len(self._queue) < QUEUE_MAX:
                self._queue[connection] = None
                connection.hold()
                return
            why = f"max.connections is {self.node.settings.number('max.connections')} and the queue is full"
        if why:
            self.refused += 1
            host = connection.client_host
            self.sparing.warning("refused " + host, "a connection from %s was refused: %s", host, why)
            connection.abort()
            return
        self._admit(connection)

    def dismiss(self, connection: Connection) -> None:
        """Forgets a connection that is gone, and gives its place to the next."""
        self._queue.pop(connection, None)
        if connection not in self.connections:
            return
        self.closed += 1
        del self.connections[connection]
        self.wheel.discard(connection)
        _count(self._by_host, connection.client_host, -1)
        _count(self._by_listener, connection.listener.name, -1)
        if self._drained is not None and not self.connections and not self._drained.done():
            self._drained.set_result(None)
        for waiting in list(self._queue):
            if self._has_place(waiting):
                del self._queue[waiting]
                self._admit(waiting)

    def _admit(self, connection: Connection) -> None:
        self.accepted += 1
        self.connections[connection] = None
        _count(self._by_host, connection.client_host, 1)
        _count(self._by_listener, connection.listener.name, 1)
        self.wheel.add(connection)
        connection.admitted()

    def _objection(self, host: str) -> str:
        if self.draining:
            return "the node is shutting down"
        settings = self.node.settings
        allowed = settings.connections_per_ip.get(host, settings.number("max.connections.per.ip"))
        return f"max.connections.per.ip is {allowed}" if self._by_host.get(host, 0) >= allowed else ""

    def _has_place(self, connection: Connection) -> bool:
        settings, name = self.node.settings, connection.listener.name
        own = settings.for_listener(name, "max.connections")
        if isinstance(own, int) and self._by_listener.get(name, 0) >= own:
            return False
        return len(self.connections) < settings.number("max.connections") or name == settings.inter_broker_listener_name

    async def close(self, drain_ms: float) -> None:
        """Starts no further request, lets those that run be answered, and cuts what is left after `drain_ms`."""
        self.draining = True
        for connection in list(self._queue):
            connection.abort()
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

    def cut(self) -> None:
        """Ends every connection at once, as the end of the process would."""
        self.draining = True
        for connection in (*self._queue, *self.connections):
            connection.abort()
        self.wheel.stop()


def _count(counts: dict[str, int], name: str, change: int) -> None:
    left = counts.get(name, 0) + change
    if left:
        counts[name] = left
    else:
        del counts[name]
