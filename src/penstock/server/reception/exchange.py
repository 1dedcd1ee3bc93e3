"""One request and its reply, from the header that was read to the reply's way out.

An exchange is the context that its handler sees, and everything that is counted, charged or refused about the request
is done here, whichever way it was served:

| what | when |
|---|---|
| the request, its bytes | `__init__`: it is known what it is |
| the charge to its quotas, the throttle time in its reply | `framed`, `reply_with`: on the way from outcome to bytes |
| the charge of a fetch, which decides what its reply is | `toll_due`, by its driver, before the reply exists |
| an error code of the reply, the reply, its bytes, the time | `framed`, `reply_with` |
| what nobody foresaw | `excuse` |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol, cast

from penstock.model.errors import UNKNOWN_SERVER_ERROR, Refused
from penstock.protocol.codec import parts_size
from penstock.protocol.frame import frame_response
from penstock.server.doors import CLUSTER_NAME, NO_REPLY, ConnectionDoor, Context, Encoded
from penstock.server.reception.quotas import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.protocol.wire import Message, Records
    from penstock.security.quotas.clients import Meter
    from penstock.server.doors import (
        Later,
        ListenerInfo,
        NoReply,
        Operation,
        Principal,
        ResourceType,
        Services,
        Settled,
        Toll,
    )
    from penstock.server.reception.dispatch import Route
    from penstock.server.reception.quotas import FetchToll, Quotas

_INT32: Final = Struct(">i")


class Desk(Protocol):
    """What the exchanges of a kind of listener share."""

    @property
    def node(self) -> Services: ...
    @property
    def monotonic_ms(self) -> Callable[[], float]: ...
    @property
    def quotas(self) -> Quotas: ...
    @property
    def request_timeout_ms(self) -> int: ...


class Line(ConnectionDoor, Protocol):
    """The connection that an exchange came by, and where its reply has a place in line."""

    listener: ListenerInfo
    client_host: str
    client_id: str | None
    dialled: tuple[str, int]
    principal: Principal
    by_token: bool
    meter: Meter | None

    def settle(self, exchange: Exchange, future: asyncio.Future[Settled]) -> None:
        """What the exchange waited for is in the future."""

    def answer(self, exchange: Exchange) -> None:
        """What the exchange waited for is in its `later`."""


class Exchange(Context):
    """Made for every request, so it has few parts until it has to wait: `wait` adds the others."""

    __slots__ = (
        "_desk",
        "_held_ms",
        "correlation_id",
        "future",
        "later",
        "line",
        "parts",
        "route",
        "size",
        "started_ms",
        "toll",
        "waits",
    )

    def __init__(
        self,
        desk: Desk,
        line: Line,
        route: Route,
        correlation_id: int,
        size: int,
        received_ms: float,
        started_ms: float,
    ) -> None:
        self.node = desk.node
        self.api_key = route.key
        self.api_version = route.version
        self.client_id = line.client_id
        self.received_ms = received_ms
        self.deadline = received_ms + desk.request_timeout_ms
        self.principal = line.principal
        self.listener = line.listener
        self.client_host = line.client_host
        self.dialled = line.dialled
        self.connection = self.line = line
        self._desk = desk
        self.route = route
        self.correlation_id = correlation_id
        self.size = size
        self.started_ms = started_ms
        self.waits = False
        self.toll: FetchToll | None = None
        route.requests += 1
        route.metrics.request_bytes += size + 4

    @property
    def by_token(self) -> bool:
        return self.line.by_token

    # Waiting, and the place in line.

    def wait(self, later: Later | None = None, future: asyncio.Future[Settled] | None = None) -> None:
        """The reply comes later; until then it has no parts. A future keeps the next request back, `later` does not."""
        if not self.waits:
            self.waits = True
            self._held_ms = 0.0 if self._desk.quotas is UNLIMITED else self._desk.monotonic_ms() - self.started_ms
        self.parts: list[Records] | None = None
        self.later: Later | None = later
        self.future: asyncio.Future[Settled] | None = future
        if later is not None:
            later.when_ready = self.ready
        elif future is not None:
            future.add_done_callback(self.settled)

    def settled(self, future: asyncio.Future[Settled]) -> None:
        self.line.settle(self, future)

    def ready(self) -> None:
        self.line.answer(self)

    def abandon(self) -> None:
        """The asker is gone. A wait ends with it; a task may be in the middle of something, so it runs on."""
        if self.future is not None and not isinstance(self.future, asyncio.Task):
            self.future.cancel()

    # What it costs, where somebody has a limit.

    def toll_due(self) -> Toll | None:
        return self._desk.quotas.toll_of(self)

    def used_ms(self, now_ms: float) -> float:
        """For how long it has held the loop so far: waiting costs nothing."""
        return self._held_ms if self.waits else now_ms - self.started_ms

    def clocked(self, work: Awaitable[Settled]) -> Awaitable[Settled]:
        """The work of a handler that awaits, with the time of its steps counted if anybody has a limit."""
        if self._desk.quotas is UNLIMITED or not isinstance(work, Coroutine):
            return work
        return _Clocked(work, self)

    @property
    def monotonic_ms(self) -> Callable[[], float]:
        return self._desk.monotonic_ms

    def held(self, duration_ms: float) -> None:
        """Its work went on for that long."""
        self._held_ms += duration_ms

    # From an outcome to a reply.

    def framed(self, frame: bytes) -> bytes:
        """The reply that the short way made whole. The common case, so nothing stands in its way."""
        desk = self._desk
        now_ms = desk.monotonic_ms()
        if desk.quotas is not UNLIMITED:
            throttle_ms = desk.quotas.throttle_ms(self, len(frame), now_ms)
            if throttle_ms:
                self.line.mute(throttle_ms)
                frame = self.route.throttled(frame, throttle_ms)
        self._answered(len(frame), now_ms)
        return frame

    def reply_with(self, outcome: Message | Encoded | NoReply) -> list[Records]:
        """The whole frame as parts; none when nothing is sent. Charges the request, and mutes who is over a quota."""
        if outcome is NO_REPLY:
            self._charge(0)
            self._answered(0, self._desk.monotonic_ms())
            return []
        if isinstance(outcome, Encoded):
            parts = frame_response(self.correlation_id, list(outcome.parts), self.route.api, self.route.version)
            self._charge(parts_size(parts))
        else:
            parts = self._told(outcome)
        (size,) = _INT32.unpack_from(cast("bytes", parts[0]))  # what follows it
        self._answered(4 + size, self._desk.monotonic_ms())
        return parts

    def _told(self, message: object) -> list[Records]:
        route = self.route
        parts = route.encode(self.correlation_id, message)
        if route.has_error_code and getattr(message, "error_code", 0) != 0:
            route.metrics.errors += 1
        if self._desk.quotas is not UNLIMITED:
            throttle_ms = self._charge(parts_size(parts))
            # A pause that the controller asks for may be longer.
            if throttle_ms and route.has_throttle_time and throttle_ms > getattr(message, "throttle_time_ms", 0):
                setattr(message, "throttle_time_ms", throttle_ms)  # noqa: B010  # this version of its class has one
                parts = route.encode(self.correlation_id, message)
        return parts

    def excuse(self, failure: BaseException) -> list[Records] | None:
        """The reply to a request that went wrong; None when its version's reply has no place for an error."""
        route = self.route
        route.metrics.unexpected += 1
        if not route.has_error_code:
            return None
        error = failure.error if isinstance(failure, Refused) else UNKNOWN_SERVER_ERROR
        return self.reply_with(route.make_response(error_code=error.code))

    # What is charged and counted.

    def _charge(self, reply_bytes: int) -> int:
        """A client over its quota is told to pause, and muted for as long."""
        desk = self._desk
        if desk.quotas is UNLIMITED:
            return 0
        throttle_ms = desk.quotas.throttle_ms(self, reply_bytes, desk.monotonic_ms())
        if throttle_ms > 0:
            self.line.mute(throttle_ms)
        return throttle_ms

    def _answered(self, reply_bytes: int, now_ms: float) -> None:
        metrics, received_ms = self.route.metrics, self.received_ms
        metrics.response_bytes += reply_bytes
        metrics.queued_ms += self.started_ms - received_ms
        metrics.total.observe(now_ms - received_ms)


class AuditedExchange(Exchange):
    """The same on a node that also tells what was allowed. A class of its own: the others pay nothing for it."""

    __slots__ = ()

    def allow(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        if not super().allow(operation, resource_type, name):
            return False
        assert self.node.audit is not None, "there is somebody to tell"
        self.node.audit.allowed(self, operation, resource_type, name)
        return True


class _Clocked(Coroutine[object, object, "Settled"]):
    """A coroutine that tells its exchange how long each of its steps held the loop."""

    __slots__ = ("_exchange", "_work")

    def __init__(self, work: Coroutine[object, object, Settled], exchange: Exchange) -> None:
        self._work, self._exchange = work, exchange

    def send(self, value: object) -> object:
        now_ms = self._exchange.monotonic_ms
        started_ms = now_ms()
        try:
            return self._work.send(value)
        finally:
            self._exchange.held(now_ms() - started_ms)

    def throw(self, *failure: object) -> object:
        return self._work.throw(*failure)  # type: ignore[call-overload]  # what a task throws

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> object:  # type: ignore[override]  # a task steps it; nobody awaits it
        return self._work.__await__()
