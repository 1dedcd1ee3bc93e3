"""What all connections of a node share: the doors behind them, the limits on them, and who they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Protocol

from penstock.server.logs import Sparing
from penstock.server.reception.exchange import AuditedExchange, Exchange
from penstock.server.reception.pace import Pace
from penstock.server.reception.quotas import UNLIMITED, Quotas
from penstock.transport.idle import Idler, IdleWheel
from penstock.transport.intake import Intake

if TYPE_CHECKING:
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.ports import Offload
    from penstock.server.doors import ListenerInfo, Services
    from penstock.server.reception.dispatch import Dispatch
    from penstock.server.reception.strangers import Strangers

_log = logging.getLogger("penstock.server.reception")

LEAVE_WITHIN_S = 1.0
"""How long requests of a user who was changed or deleted may still be answered. One of them may be the change."""

QUEUE_MAX = 50
"""How many connections may wait for a free place; as many as the backlog of a listening socket."""

HELD_MAX = 1_000
"""How many connections of addresses over their rate are held; further ones are closed at once."""


class Guest(Idler, Protocol):
    """A connection as the reception sees it."""

    listener: ListenerInfo
    client_host: str
    software: tuple[str, str]
    """What it said it is: a name and a version, both empty until then."""

    def admitted(self) -> None:
        """There is a place; until then what it asks waits."""

    def logged_in_by(self, changed: set[tuple[int, str]]) -> bool:
        """Whether its login was, or is about to be, by one of these credentials: (type of SCRAM, name)."""

    def logged_in_by_token(self, changed: set[str]) -> bool:
        """Whether its login was, or is about to be, by one of these tokens, which is gone or ends earlier now."""

    def logged_in_plainly(self, names: set[str]) -> bool:
        """Whether its login was by PLAIN under one of these names."""

    def drain(self) -> None:
        """Starts no further request; closes when those that run are answered."""

    def abort(self) -> None: ...


class Reception:
    """Admits connections, knows all that stand, and sees them out. One for each kind of listener.

    `max.connections` makes the surplus wait: it is accepted but not served until a place is free. The listener between
    brokers is exempt from the limit of the whole broker, so that clients cannot cut a broker off its cluster.
    `max.connections.per.ip` turns the surplus away. Who comes faster than `max.connection.creation.rate` waits too; an
    address over its own rate is held for a moment and turned away.
    """

    __slots__ = (
        "_by_host",
        "_by_listener",
        "_drained",
        "_greeted",
        "_held",
        "_leaving",
        "_numbers",
        "_pace",
        "_pace_timer",
        "_queue",
        "accepted",
        "clock",
        "closed",
        "connections",
        "dispatch",
        "draining",
        "exchange",
        "frame_bytes_max",
        "intake",
        "loop",
        "malformed",
        "monotonic_ms",
        "node",
        "offload",
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
        offload: Offload | None = None,
    ) -> None:
        """Limits are read from `node.settings` whenever a connection comes; sizes and times once, as in Kafka.

        `numbers` are those of its connections; a node with two receptions gives them different ones. `offload` is for
        what listeners with TLS or logins must not do on the loop.
        """
        settings = node.settings
        self.loop = loop
        self.node = node
        self.dispatch = dispatch
        self.clock = node.clock
        self.offload = offload
        self.monotonic_ms = node.clock.monotonic_ms
        self.quotas = quotas
        told = node.audit is not None and node.audit.tells_allowed
        self.exchange: type[Exchange] = AuditedExchange if told else Exchange
        self.frame_bytes_max = settings.number("socket.request.max.bytes")
        self.request_timeout_ms = settings.number("request.timeout.ms")
        self.intake = Intake(loop, budget_bytes=settings.number("queued.max.request.bytes"))
        self.wheel = IdleWheel(loop, self.intake, settings.number("connections.max.idle.ms"))
        self.wheel.start()
        self.sparing = Sparing(_log, clock=node.clock.monotonic_ms)
        self.connections: dict[Guest, None] = {}  # in order of arrival: what is done to all has an order
        self.accepted = 0
        self.closed = 0
        self.refused = 0  # turned away at the door
        self.malformed = 0  # closed because of what they sent
        self.draining = False
        self._by_host: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        self._greeted: dict[Guest, Strangers] = {}  # those who log in, and where they are counted
        self._leaving: dict[Guest, asyncio.TimerHandle] = {}  # those who are cut when their time is over
        self._queue: dict[Guest, None] = {}  # those who wait for a place, in order
        self._held: dict[Guest, asyncio.TimerHandle] = {}  # those who came too often, until they are turned away
        self._pace = Pace(settings)
        self._pace_timer: asyncio.TimerHandle | None = None
        self._numbers: Iterator[int] = numbers or count(1)
        self._drained: asyncio.Future[None] | None = None

    def number(self) -> int:
        return next(self._numbers)

    def charge_by(self, quotas: Quotas) -> None:
        """Limits were set where there were none, or the last one went."""
        self.quotas = quotas

    def arrive(self, connection: Guest) -> None:
        """Admits a new connection, lets it wait, or turns it away."""
        why = self._objection(connection.client_host)
        if not why and not self._has_place(connection):
            if len(self._queue) < QUEUE_MAX:
                self._queue[connection] = None
                self._look_again()
                return
            why = "too many connections stand or come (max.connections, max.connection.creation.rate)"
        if why:
            self.refused += 1
            host = connection.client_host
            self.sparing.warning("refused " + host, "a connection from %s was refused: %s", host, why)
            connection.abort()
            return
        self._admit(connection)

    def greet(self, connection: Guest, strangers: Strangers) -> bool:
        """Lets a stranger begin its login; False when there are too many at its listener, and it is gone."""
        if self.draining or not strangers.enter(connection.client_host):
            host = connection.client_host
            self.sparing.warning("strangers " + host, "a connection from %s was refused: too many log in now", host)
            connection.abort()
            return False
        self._greeted[connection] = strangers
        return True

    def known(self, connection: Guest) -> None:
        """A stranger has logged in, or is gone."""
        if (strangers := self._greeted.pop(connection, None)) is not None:
            strangers.leave(connection.client_host)

    def follow(self, _image: ClusterImage, delta: Delta) -> None:
        """Sees those out whose SCRAM credential is gone or another one now, or whose delegation token ends earlier."""
        if delta.scram:
            self._cut(lambda each: each.logged_in_by(delta.scram), "its credential was changed or deleted")
        if delta.tokens:
            self._cut(lambda each: each.logged_in_by_token(delta.tokens), "its delegation token was ended")

    def cut_users(self, listener_name: str, names: set[str]) -> None:
        """The same for users of PLAIN on one listener."""
        if names:
            self._cut(
                lambda each: each.listener.name == listener_name and each.logged_in_plainly(names),
                "its user was changed or deleted",
            )

    def _cut(self, concerned: Callable[[Guest], bool], why: str) -> None:
        """What is under way is answered, within bounds; nothing starts any more."""
        for connection in (*self._greeted, *self._queue, *self.connections):
            if connection in self._leaving or not concerned(connection):
                continue
            _log.info("the connection from %s is cut: %s", connection, why)
            if connection not in self.connections:
                connection.abort()
                continue
            self._leaving[connection] = self.loop.call_later(LEAVE_WITHIN_S, connection.abort)
            connection.drain()

    def came_too_often(self, connection: Guest) -> bool:
        """Whether its address is over its rate: then it is held, so that it does not come again at once, and cut."""
        pause_ms = self.quotas.charge_connection(connection.client_host)
        if not pause_ms:
            return False
        self.refused += 1
        host = connection.client_host
        self.sparing.warning("too often " + host, "connections from %s come faster than its quota allows", host)
        if len(self._held) < HELD_MAX:
            self._held[connection] = self.loop.call_later(pause_ms / 1_000, connection.abort)
        else:
            connection.abort()
        return True

    def dismiss(self, connection: Guest) -> None:
        """Forgets a connection that is gone, and gives its place to the next."""
        self.known(connection)
        self._queue.pop(connection, None)
        for timers in (self._leaving, self._held):
            if (timer := timers.pop(connection, None)) is not None:
                timer.cancel()
        if connection not in self.connections:
            return
        self.closed += 1
        del self.connections[connection]
        self.wheel.discard(connection)
        _count(self._by_host, connection.client_host, -1)
        _count(self._by_listener, connection.listener.name, -1)
        if self._drained is not None and not self.connections and not self._drained.done():
            self._drained.set_result(None)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        for waiting in list(self._queue):
            if self._has_place(waiting):
                del self._queue[waiting]
                self._admit(waiting)
        self._look_again()

    def _look_again(self) -> None:
        """Those who wait because others came just before them are let in by time."""
        if self._pace_timer is not None or not self._queue:
            return
        wait_ms = self._pace.opens_in_ms(self.monotonic_ms())
        if wait_ms:
            self._pace_timer = self.loop.call_later(wait_ms / 1_000, self._pace_is_open)

    def _pace_is_open(self) -> None:
        self._pace_timer = None
        self._admit_waiting()

    def _admit(self, connection: Guest) -> None:
        self.accepted += 1
        self._pace.came(connection.listener.name, self.monotonic_ms())
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

    def _has_place(self, connection: Guest) -> bool:
        settings, name = self.node.settings, connection.listener.name
        if not self._pace.lets_in(name, self.monotonic_ms()):
            return False
        own = settings.for_listener(name, "max.connections")
        if isinstance(own, int) and self._by_listener.get(name, 0) >= own:
            return False
        return len(self.connections) < settings.number("max.connections") or name == settings.inter_broker_listener_name

    async def close(self, drain_ms: float) -> None:
        """Starts no further request, lets those that run be answered, and cuts what is left after `drain_ms`."""
        self.draining = True
        for connection in (*self._queue, *self._held, *self._greeted):
            connection.abort()
        self._stop_pacing()
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
        self._stop_pacing()
        for connection in (*self._queue, *self._held, *self._greeted, *self.connections):
            connection.abort()
        self.wheel.stop()

    def _stop_pacing(self) -> None:
        if self._pace_timer is not None:
            self._pace_timer.cancel()
            self._pace_timer = None


def _count(counts: dict[str, int], name: str, change: int) -> None:
    left = counts.get(name, 0) + change
    if left:
        counts[name] = left
    else:
        del counts[name]
