"""One client's connection: requests in, one at a time, replies out in the same order.

A request that is answered at once costs no task and no future. One that waits gets a slot; replies leave from the
head of the line of slots. The next request starts when the previous one has left `do`: a plain awaitable keeps it
back, `Later` (only Produce returns it) does not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from struct import Struct
from typing import TYPE_CHECKING, Any

from penstock.model.errors import UNKNOWN_SERVER_ERROR, UNSUPPORTED_VERSION, Refused
from penstock.protocol.codec import decode, parts_size
from penstock.protocol.frame import encode_response_parts, frame_response, read_request_header
from penstock.protocol.registry import API_VERSIONS, APIS
from penstock.protocol.wire import Malformed
from penstock.server.context import (
    ANONYMOUS,
    NO_REPLY,
    Context,
    Disconnect,
    Encoded,
    Later,
    ListenerInfo,
    Principal,
)
from penstock.server.dispatch import Route, route_key
from penstock.server.quotas import UNLIMITED
from penstock.transport.net import plain_host
from penstock.transport.stream import FrameStream

if TYPE_CHECKING:
    from penstock.server.reception import Reception

_log = logging.getLogger(__name__)

_HEAD = Struct(">hhih")


class State(Enum):
    """How far a connection has come. A plaintext one is authenticated (as nobody) from the start."""

    NEW = "new"
    TLS_HANDSHAKE = "TLS handshake"
    SASL = "SASL exchange"
    AUTHENTICATED = "authenticated"
    REAUTHENTICATING = "authenticating again"
    CLOSED = "closed"


class _Slot:
    """A reply's place in line."""

    __slots__ = (
        "blocking",
        "connection",
        "correlation_id",
        "ctx",
        "future",
        "later",
        "lined_up",
        "parts",
        "route",
        "size",
        "started_ms",
    )

    def __init__(
        self, connection: Connection, ctx: Context, route: Route, correlation_id: int, size: int, started_ms: float
    ) -> None:
        self.connection = connection
        self.ctx = ctx
        self.route = route
        self.correlation_id = correlation_id
        self.size = size
        self.started_ms = started_ms
        self.blocking = False
        self.lined_up = False
        self.parts: list[Any] | None = None
        self.future: asyncio.Future[Any] | None = None
        self.later: Later | None = None

    def settled(self, future: asyncio.Future[Any]) -> None:
        self.connection.settle(self, future)

    def ready(self) -> None:
        self.connection.answer(self)


class Connection(FrameStream):
    """The life of the requests of one connection. See `context.py` for what a handler may return."""

    __slots__ = (
        "_busy",
        "_client_id",
        "_client_id_bytes",
        "_closed_callbacks",
        "_draining",
        "_monotonic_ms",
        "_muted",
        "_shut",
        "_slots",
        "_waiting",
        "client_host",
        "client_port",
        "dialled",
        "fetch_session",
        "idle_slot",
        "listener",
        "number",
        "principal",
        "reception",
        "software",
        "state",
    )

    def __init__(self, reception: Reception, listener: ListenerInfo) -> None:
        super().__init__(reception.loop, reception.intake, reception.frame_bytes_max)
        self.reception = reception
        self.listener = listener
        self.number = reception.number()
        self.state = State.NEW
        self.principal: Principal = ANONYMOUS
        self.software = ("", "")
        self.fetch_session: Any = None
        self.client_host = ""
        self.client_port = 0
        self.dialled = ("", 0)
        self.idle_slot = 0
        self._monotonic_ms = reception.clock.monotonic_ms
        self._client_id: str | None = None  # of the last request
        self._client_id_bytes = b""
        self._busy = False  # a request has not left `do`
        self._muted: asyncio.TimerHandle | None = None
        self._draining = False
        self._shut = False  # no request may start: muted, draining, or not admitted yet
        self._slots: list[_Slot] = []  # replies that are not ready, and ready ones behind them
        self._waiting: list[tuple[bytearray, float]] = []  # frames that may not start yet, and when they came
        self._closed_callbacks: list[Callable[[], None]] | None = None

    def __str__(self) -> str:
        return f"{self.client_host}:{self.client_port} on {self.listener.name}"

    # Coming and going.

    def opened(self) -> None:
        assert self.transport is not None
        # A peer that is gone already has no name any more; its connection ends with the first read.
        peer = self.transport.get_extra_info("peername") or ("", 0)
        mine = self.transport.get_extra_info("sockname") or ("", 0)
        self.client_host, self.client_port = plain_host(peer[0]), peer[1]
        self.dialled = (plain_host(mine[0]), mine[1])
        self.reception.arrive(self)

    def hold(self) -> None:
        """There is no place yet; what is asked meanwhile waits for `admitted`."""
        self._shut = True

    def admitted(self) -> None:
        self.state = State.AUTHENTICATED
        self._shut = False
        self._start_waiting()

    def lost(self, cause: Exception | None) -> None:
        self.state = State.CLOSED
        if cause is not None:
            _log.debug("the connection from %s broke: %s", self, cause)
        for slot in self._slots:
            # A wait (a long poll) ends with its asker. A task may be in the middle of something; it runs on.
            if slot.blocking and slot.future is not None and not isinstance(slot.future, asyncio.Task):
                slot.future.cancel()
        self._slots.clear()
        self._waiting.clear()
        if self._muted is not None:
            self._muted.cancel()
        self.reception.dismiss(self)
        callbacks, self._closed_callbacks = self._closed_callbacks, None
        for callback in callbacks or ():
            callback()

    def when_closed(self, callback: Callable[[], None]) -> None:
        if self.state is State.CLOSED:
            callback()
        elif self._closed_callbacks is None:
            self._closed_callbacks = [callback]
        else:
            self._closed_callbacks.append(callback)

    def idle(self) -> bool:
        """The wheel heard nothing for `connections.max.idle.ms`. Whoever waits for us is not idle."""
        if self.in_flight and not self.backed_up:
            return False
        _log.debug("the connection from %s is closed: idle", self)
        self.abort()
        return True

    def drain(self) -> None:
        """Starts no further request; closes when those that run are answered."""
        self._draining = self._shut = True
        self._drop_waiting()
        self._close_when_answered()

    def refused(self, why: str) -> None:
        self._misbehaved(why)

    def failed(self, why: str, cause: Exception) -> None:
        _log.error("the connection from %s is cut: %s: %s", self, why, cause)

    def _misbehaved(self, why: str) -> None:
        self.reception.malformed += 1
        self.reception.sparing.warning(
            "malformed " + self.client_host, "the connection from %s is closed: %s", self, why
        )

    # Requests.

    def frame(self, frame: bytearray) -> bool:
        now = self._monotonic_ms()
        if self._waiting or self._slots or self._shut or self._outbox is not None:
            return self._serve_or_keep(frame, now)
        return self._serve(frame, now, now)

    def _serve_or_keep(self, frame: bytearray, now: float) -> bool:
        if not self._waiting and self._may_start(frame):
            return self._serve(frame, now, now)
        if self._draining:
            return True
        self._waiting.append((frame, now))
        return False

    def _may_start(self, frame: bytearray) -> bool:
        if self._slots and (self._busy or frame[:2] != b"\0\0"):
            return False  # only a Produce (key 0) may start while a Produce waits for its acks
        return self._outbox is None and not self._shut

    def _start_waiting(self) -> None:
        """Starts what was kept back, as far as it may go now."""
        waiting = self._waiting
        while waiting and not self.closing and self._may_start(waiting[0][0]):
            frame, received_ms = waiting.pop(0)
            if self._serve(frame, received_ms, self._monotonic_ms()):
                self.done(len(frame))

    def drained(self) -> None:
        self._start_waiting()
        self._close_when_answered()

    def mute(self, duration_ms: float) -> None:
        if self._muted is not None:
            self._muted.cancel()
        self._muted = self.loop.call_later(duration_ms / 1000, self._unmute)
        self._shut = True

    def _unmute(self) -> None:
        self._muted = None
        self._shut = self._draining
        self._start_waiting()

    def _serve(self, frame: bytearray, received_ms: float, started_ms: float) -> bool:
        """Runs one request; True when it is finished with, False when its reply is still to come."""
        reception = self.reception
        try:
            route, correlation_id, body = self._read_head(frame)
            if route is None:
                return True
            if route.handle_plain is not None and reception.quotas is UNLIMITED:
                finished = self._serve_plain(route, frame, body, correlation_id, received_ms, started_ms)
                if finished is not None:
                    return finished
            version = route.version
            # Bytes that follow are let pass, as in Kafka: librdkafka sends three too many when it asks for all topics.
            request, _ = decode(route.request_class, version, frame, body)
        except Malformed as broken:
            self._misbehaved(str(broken))
            self.close()
            return True
        except Exception:  # a handler that cannot be imported
            _log.exception("a request from %s cannot be served", self)
            self.close()
            return True
        metrics = route.metrics
        route.requests += 1
        metrics.request_bytes += len(frame) + 4
        ctx = self._context(route, received_ms)
        try:
            outcome = route.handle(ctx, request)
            if outcome.__class__ is route.response_class and reception.quotas is UNLIMITED and not self._slots:
                # The common case, without a slot: nothing waits, nobody is charged.
                parts = route.encode(correlation_id, outcome)
                self.send(parts)
                metrics.response_bytes += 4 + int.from_bytes(parts[0][:4], "big")
                metrics.queued_ms += started_ms - received_ms
                metrics.total.observe(self._monotonic_ms() - received_ms)
                if route.has_error_code and outcome.error_code:
                    metrics.errors += 1
                return True
            return self._conclude(_Slot(self, ctx, route, correlation_id, len(frame), started_ms), outcome)
        except Exception as failure:  # whatever a handler raises harms its own connection only
            return self._excuse(_Slot(self, ctx, route, correlation_id, len(frame), started_ms), failure)

    def _serve_plain(
        self, route: Route, frame: bytearray, body: int, correlation_id: int, received_ms: float, started_ms: float
    ) -> bool | None:
        """As `_serve` for a request with nothing unusual in it; None when it has, and nothing was done."""
        ctx = self._context(route, received_ms)
        metrics, size = route.metrics, len(frame)
        try:
            assert route.handle_plain is not None, "only routes that have one come here"
            outcome = route.handle_plain(ctx, frame, body, correlation_id)
            if outcome is None:
                return None
            if outcome.__class__ is bytes and not self._slots:
                self.send((outcome,))
                metrics.response_bytes += len(outcome)
                metrics.queued_ms += started_ms - received_ms
                metrics.total.observe(self._monotonic_ms() - received_ms)
                finished = True
            elif isinstance(outcome, Later):
                self._await(_Slot(self, ctx, route, correlation_id, size, started_ms), outcome)
                finished = False
            else:
                finished = self._conclude(_Slot(self, ctx, route, correlation_id, size, started_ms), outcome)
        except Exception as failure:  # as in `_serve`
            finished = self._excuse(_Slot(self, ctx, route, correlation_id, size, started_ms), failure)
        route.requests += 1
        metrics.request_bytes += size + 4
        return finished

    def _context(self, route: Route, received_ms: float) -> Context:
        reception = self.reception
        return Context(
            reception.node,
            route.key,
            route.version,
            self._client_id,
            received_ms,
            received_ms + reception.request_timeout_ms,
            self.principal,
            self.listener,
            self.client_host,
            self.dialled,
            self,
        )

    def _read_head(self, frame: bytearray) -> tuple[Route | None, int, int]:
        """(route, correlation id, where the body begins); no route when the request has been dealt with already.

        Nearly every request is of a version seen before, from a client of the same name as before, and has no tags
        in its header. That case is read here; the rest goes the long way.
        """
        dispatch = self.reception.dispatch
        if len(frame) > 10:
            key, version, correlation_id, name_bytes = _HEAD.unpack_from(frame)
            route = dispatch.routes.get(route_key(key, version))
            position = 10 + name_bytes
            if route is not None and name_bytes > 0 and frame[10:position] == self._client_id_bytes:
                if not route.flexible:
                    return route, correlation_id, position
                if position < len(frame) and frame[position] == 0:
                    return route, correlation_id, position + 1
        header, body = read_request_header(frame)
        self._client_id = header.client_id
        self._client_id_bytes = (header.client_id or "").encode()
        route = dispatch.route(header.request_api_key, header.request_api_version)
        if route is None:
            self._unserved(header.request_api_key, header.request_api_version, header.correlation_id)
        return route, header.correlation_id, body

    def _unserved(self, key: int, version: int, correlation_id: int) -> None:
        """Only ApiVersions is answered, in version 0 that all know: a client newer than we finds out that way."""
        api = APIS[key]
        if key != API_VERSIONS:
            self._misbehaved(f"{api.name} v{version} is not served")
            self.close()
            return
        response_class = api.response()
        known = response_class.ApiVersion(api_key=key, min_version=api.min, max_version=api.max)
        reply = response_class(error_code=UNSUPPORTED_VERSION.code, api_keys=[known])
        self.send(encode_response_parts(correlation_id, reply, key, 0))

    # Replies.

    def _conclude(self, slot: _Slot, outcome: Any) -> bool:
        """Deals with what a handler, or the awaitable that it gave, came up with."""
        if outcome.__class__ is slot.route.response_class:
            return self._finish(slot, self._encoded(slot, outcome))
        if outcome is NO_REPLY:
            return self._finish(slot, [])
        if outcome.__class__ is bytes:
            return self._finish(slot, [outcome])  # a whole frame
        if isinstance(outcome, Later):
            self._await(slot, outcome)
            return False
        if isinstance(outcome, Encoded):
            parts = frame_response(slot.correlation_id, list(outcome.parts), slot.route.api, slot.route.version)
            self._throttle_ms(slot, parts)
            return self._finish(slot, parts)
        future: asyncio.Future[Any] = asyncio.ensure_future(outcome, loop=self.loop)
        self._line_up(slot)
        slot.future = future
        slot.blocking = self._busy = True
        future.add_done_callback(slot.settled)
        return False

    def _await(self, slot: _Slot, later: Later) -> None:
        slot.later = later
        later.when_ready = slot.ready
        self._line_up(slot)

    def _line_up(self, slot: _Slot) -> None:
        if not slot.lined_up:
            slot.lined_up = True
            self._slots.append(slot)

    def settle(self, slot: _Slot, future: asyncio.Future[Any]) -> None:
        """What a request waited for is in the future."""
        if self.state is State.CLOSED:
            if not future.cancelled():
                future.exception()  # nobody is left to be told; looking at it keeps asyncio from complaining
            return
        slot.blocking = self._busy = False
        try:
            finished = self._conclude(slot, future.result())
        except (Exception, asyncio.CancelledError) as failure:
            finished = self._excuse(slot, failure)
        self._go_on(slot, finished=finished)

    def answer(self, slot: _Slot) -> None:
        """What a request waited for is in the slot's `later`."""
        # The two know each other; who forgets one here spares the collector a request with its frame each time.
        later, slot.later = slot.later, None
        if self.state is State.CLOSED:
            return
        try:
            assert later is not None, "it was waited for"
            outcome = later.outcome()
            if outcome.__class__ is bytes and len(self._slots) == 1:
                # The common case: a whole frame, and nobody else in line.
                self._slots.clear()
                self._observe(slot, len(outcome))
                self.send((outcome,))
                finished = True
            else:
                finished = self._conclude(slot, outcome)
        except Exception as failure:
            finished = self._excuse(slot, failure)
        self._go_on(slot, finished=finished)

    def _go_on(self, slot: _Slot, *, finished: bool) -> None:
        if finished:
            self.done(slot.size)
        if self._waiting:
            self._start_waiting()
        if self._draining:
            self._close_when_answered()

    def _observe(self, slot: _Slot, reply_bytes: int) -> None:
        metrics, received_ms = slot.route.metrics, slot.ctx.received_ms
        metrics.queued_ms += slot.started_ms - received_ms
        metrics.total.observe(self._monotonic_ms() - received_ms)
        metrics.response_bytes += reply_bytes

    def _finish(self, slot: _Slot, parts: list[Any]) -> bool:
        """Sends a reply, or keeps it in line behind earlier ones. An empty one takes no place in the line."""
        self._observe(slot, 4 + int.from_bytes(parts[0][:4], "big") if parts else 0)
        if slot.lined_up:
            slot.parts = parts
            self._flush()
        elif self._slots and parts:
            slot.parts = parts
            self._slots.append(slot)
        elif parts:
            self.send(parts)
        return True

    def _flush(self) -> None:
        """Sends the replies at the head of the line that are ready."""
        slots = self._slots
        ready: list[Any] = []
        while slots and slots[0].parts is not None:
            ready += slots.pop(0).parts or ()
        if ready:
            self.send(ready)

    def _encoded(self, slot: _Slot, message: Any) -> list[Any]:
        route = slot.route
        parts = route.encode(slot.correlation_id, message)
        if route.has_error_code and message.error_code:
            route.metrics.errors += 1
        throttle_ms = self._throttle_ms(slot, parts)
        if throttle_ms and route.has_throttle_time:
            message.throttle_time_ms = throttle_ms
            parts = route.encode(slot.correlation_id, message)
        return parts

    def _throttle_ms(self, slot: _Slot, parts: list[Any]) -> int:
        """Charges the request. A client over its quota is told to pause, and muted for as long."""
        quotas = self.reception.quotas
        if quotas is UNLIMITED:
            return 0
        handling_ms = self._monotonic_ms() - slot.started_ms
        throttle_ms = quotas.throttle_ms(slot.ctx, slot.size + 4, parts_size(parts), handling_ms)
        if throttle_ms > 0:
            self.mute(throttle_ms)
        return throttle_ms

    def _excuse(self, slot: _Slot, failure: BaseException) -> bool:
        """A request went wrong: the client gets an error if its version's reply has one, else the connection ends."""
        route = slot.route
        if isinstance(failure, Disconnect):
            self.reception.sparing.warning(
                f"{route} {failure.why}", "the connection from %s is closed by %s: %s", self, route, failure.why
            )
            self.close()
            return True
        route.metrics.unexpected += 1
        _log.error("%s from %s failed", route, self, exc_info=failure)
        if not route.has_error_code:
            self.close()
            return True
        error = failure.error if isinstance(failure, Refused) else UNKNOWN_SERVER_ERROR
        return self._finish(slot, self._encoded(slot, route.response_class(error_code=error.code)))

    def _drop_waiting(self) -> None:
        while self._waiting:
            frame, _ = self._waiting.pop()
            self.done(len(frame))

    def _close_when_answered(self) -> None:
        if self._draining and not self._slots and not self.backed_up:
            self.close()
