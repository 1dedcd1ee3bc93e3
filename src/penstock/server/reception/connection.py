"""One client's connection: requests in, one at a time, replies out in the same order.

Whether a request may start is the gate's word (`gate.py`); what is counted and charged about it is the exchange's
(`exchange.py`). A request that is answered at once costs no task and no future. One that waits takes a place in line;
replies leave from the head of the line. The next request starts when the previous one has left `do`: a plain awaitable
keeps it back, `Later` (only Produce returns it) does not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from struct import Struct
from typing import TYPE_CHECKING, cast

from penstock.model.errors import UNSUPPORTED_VERSION, PenstockError
from penstock.protocol.codec import decode
from penstock.protocol.frame import encode_response_parts, read_request_header
from penstock.protocol.registry import API_VERSIONS, APIS
from penstock.protocol.wire import Malformed, Records
from penstock.server.doors import ANONYMOUS, NO_REPLY, Disconnect, Encoded, Later, ListenerInfo, Principal
from penstock.server.reception.dispatch import Route, route_key
from penstock.server.reception.exchange import Exchange
from penstock.server.reception.gate import Gate, Hold, State, Verdict
from penstock.transport.net import plain_host
from penstock.transport.stream import IN_FLIGHT_MAX, FrameStream

if TYPE_CHECKING:
    from penstock.protocol.wire import Message
    from penstock.security.quotas.clients import Meter
    from penstock.server.doors import NoReply, Outcome, Settled
    from penstock.server.reception.entrance import Entrance
    from penstock.server.reception.login import Login
    from penstock.server.reception.reception import Reception

_log = logging.getLogger("penstock.server.connection")

_HEAD = Struct(">hhih")


class Connection(FrameStream):
    """The life of the requests of one connection. See `doors.py` for what a handler may return."""

    __slots__ = (
        "_busy",
        "_client_id_bytes",
        "_closed_callbacks",
        "_entrance",
        "_gate",
        "_line",
        "_login",
        "_monotonic_ms",
        "_mute_timer",
        "_muted_until_s",
        "_waiting",
        "by_token",
        "client_host",
        "client_id",
        "client_port",
        "dialled",
        "idle_slot",
        "listener",
        "meter",
        "number",
        "principal",
        "reception",
        "software",
    )

    def __init__(self, reception: Reception, listener: ListenerInfo, entrance: Entrance | None = None) -> None:
        super().__init__(reception.loop, reception.intake, reception.frame_bytes_max)
        self.reception = reception
        self.listener = listener
        self._entrance = entrance
        self.number = reception.number()
        self.principal: Principal = ANONYMOUS
        self.by_token = False  # logged in by a delegation token
        self.meter: Meter | None = None  # of the principal, made when it is first charged
        self.software = ("", "")
        self.client_host = ""
        self.client_port = 0
        self.dialled = ("", 0)
        self.idle_slot = 0
        self._monotonic_ms = reception.clock.monotonic_ms
        self.client_id: str | None = None  # of the last request
        self._client_id_bytes = b""
        self._busy = False  # a request has not left `do`
        self._gate = Gate(has_logins=entrance is not None and entrance.logins is not None)
        self._login: Login | None = None
        self._mute_timer: asyncio.TimerHandle | None = None
        self._muted_until_s = 0.0
        self._line: list[Exchange] = []  # those whose reply is not ready, and ready ones behind them
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
        if self.reception.came_too_often(self):
            return
        if self._entrance is None or self._known_by(self._entrance):
            self.reception.arrive(self)

    def _known_by(self, entrance: Entrance) -> bool:
        """Whether it is known who comes. Who has to log in first is asked now, and who is nobody is gone."""
        assert self.transport is not None, "it was made just now"
        try:
            self.principal = entrance.principal_of(self.transport)
        except PenstockError as nobody:
            self._misbehaved(str(nobody))
            if (audit := self.reception.node.audit) is not None:
                audit.login_failed(self.client_host, self.listener.name, None, "certificate", "", str(nobody))
            self.abort()
            return False
        if entrance.logins is None:
            return True
        if self.reception.greet(self, entrance.strangers):
            self.in_flight_max = 1
            self._login = entrance.login(self, self._gate, self.reception)
            self._login.begin()
        return False

    def logged_in(self) -> None:
        """A stranger is known now, and may have to wait for a place like everybody."""
        self.in_flight_max = IN_FLIGHT_MAX
        self.reception.known(self)
        self._gate.enter(State.NEW)
        self.reception.arrive(self)

    def logged_in_by(self, changed: set[tuple[int, str]]) -> bool:
        """Whether its login was by one of these credentials: (type of SCRAM, name)."""
        return self._login is not None and self._login.concerns(changed)

    def logged_in_by_token(self, changed: set[str]) -> bool:
        """Whether its login was by one of these delegation tokens, and is no longer good for as long as it was."""
        return self._login is not None and self._login.lost_token(changed)

    def logged_in_plainly(self, names: set[str]) -> bool:
        return self._login is not None and self._login.is_plain_user(names)

    @property
    def state(self) -> State:
        return self._gate.state

    def admitted(self) -> None:
        """There is a place; until now what was asked has waited."""
        self._gate.enter(State.AUTHENTICATED)
        self._start_waiting()

    def close(self) -> None:
        if self.state is not State.CLOSED:
            self._gate.enter(State.CLOSING)
        super().close()

    def lost(self, cause: Exception | None) -> None:
        self._gate.enter(State.CLOSED)
        if cause is not None:
            _log.debug("the connection from %s broke: %s", self, cause)
        for exchange in self._line:
            exchange.abandon()
        self._line.clear()
        self._waiting.clear()
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        if self._login is not None:
            self._login.end()
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
        if (self.in_flight and not self.backed_up) or self._mute_timer is not None:
            return False
        _log.debug("the connection from %s is closed: idle", self)
        self.abort()
        return True

    def drain(self) -> None:
        """Starts no further request; closes when those that run are answered."""
        self._gate.enter(State.CLOSING)
        self._drop_waiting()
        self._close_when_answered()

    def no_frame(self, beginning: bytes, size: int) -> str:
        why = super().no_frame(beginning, size)
        known = self.state not in (State.SASL, State.REAUTHENTICATING)
        return why if known else why.replace("socket.request.max.bytes", "sasl.server.max.receive.size")

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
        if self._gate.open and not (self._line or self._waiting) and self._outbox is None:
            return self._serve(frame, now, now)
        verdict = Verdict.KEEP if self._waiting else self._verdict(frame)
        return self._obey(verdict, frame, now, now)

    def _verdict(self, frame: bytearray) -> Verdict:
        """The gate's word, unless an earlier request or a peer that does not read keeps this one back."""
        key = int.from_bytes(frame[:2], "big")
        verdict = self._gate.verdict(key)
        if verdict in (Verdict.KEEP, Verdict.DROP):
            return verdict
        # Only a Produce (key 0) may start while a Produce waits for its acks.
        behind = self._line and (self._busy or key != 0 or verdict is Verdict.LOGIN or len(frame) < _HEAD.size)
        return Verdict.KEEP if behind or self._outbox is not None else verdict

    def _obey(self, verdict: Verdict, frame: bytearray, received_ms: float, started_ms: float) -> bool:
        """True when the frame is finished with."""
        match verdict:
            case Verdict.SERVE:
                return self._serve(frame, received_ms, started_ms)
            case Verdict.KEEP:
                self._waiting.append((frame, received_ms))
                return False
            case Verdict.DROP:
                return True
            case Verdict.LOGIN:
                assert self._login is not None, "a listener without logins serves what it lets in"
                return self._login.heard(frame, received_ms)

    def serve(self, frame: bytearray, received_ms: float) -> bool:
        """What a login finds to be none of its business."""
        return self._serve(frame, received_ms, self._monotonic_ms())

    def go_on(self) -> None:
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Starts what was kept back, as far as it may go now."""
        waiting = self._waiting
        while waiting and not self.closing:
            verdict = self._verdict(waiting[0][0])
            if verdict is Verdict.KEEP:
                return
            frame, received_ms = waiting.pop(0)
            if self._obey(verdict, frame, received_ms, self._monotonic_ms()):
                self.done(len(frame))

    def drained(self) -> None:
        self._start_waiting()
        self._close_when_answered()

    def mute(self, duration_ms: float) -> None:
        """A pause that is under way is never made shorter."""
        until_s = self.loop.time() + duration_ms / 1000
        if self._mute_timer is not None:
            if until_s <= self._muted_until_s:
                return
            self._mute_timer.cancel()
        self._muted_until_s = until_s
        self._mute_timer = self.loop.call_later(duration_ms / 1000, self._unmute)
        self._gate.hold(Hold.MUTED)

    def _unmute(self) -> None:
        self._mute_timer = None
        self._gate.release(Hold.MUTED)
        self._start_waiting()

    def _serve(self, frame: bytearray, received_ms: float, started_ms: float) -> bool:
        """Runs one request; True when it is finished with, False when its reply is still to come."""
        try:
            route, correlation_id, body = self._read_head(frame)
        except Malformed as broken:
            return self._unreadable(broken)
        except Exception:  # a handler that cannot be imported
            _log.exception("a request from %s cannot be served", self)
            self.close()
            return True
        if route is None:
            return True
        exchange = self.reception.exchange(
            self.reception, self, route, correlation_id, len(frame), received_ms, started_ms
        )
        try:
            outcome = None
            if route.handle_plain is not None:
                outcome = route.handle_plain(exchange, frame, body, correlation_id)
            if outcome is None:
                try:
                    # Bytes that follow are let pass, as in Kafka: librdkafka sends three too many when it asks for all
                    # topics.
                    request, _ = decode(route.request_class, route.version, frame, body)
                except Malformed as broken:
                    return self._unreadable(broken)
                outcome = route.handle(exchange, request)
            if outcome.__class__ is bytes and not self._line:
                self.send((exchange.framed(outcome),))
                return True
            return self._conclude(exchange, outcome)
        except Exception as failure:  # whatever a handler raises harms its own connection only
            return self._excuse(exchange, failure)

    def _unreadable(self, broken: Malformed) -> bool:
        self._misbehaved(str(broken))
        self.close()
        return True

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
        self.client_id = header.client_id
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

    def _conclude(self, exchange: Exchange, outcome: bytes | Outcome) -> bool:
        """Deals with what a handler, or the awaitable that it gave, came up with."""
        kind = outcome.__class__
        if kind is exchange.route.response_class or kind is Encoded or outcome is NO_REPLY:
            return self._finish(exchange, exchange.reply_with(cast("Message | Encoded | NoReply", outcome)))
        if isinstance(outcome, bytes):
            return self._finish(exchange, [exchange.framed(outcome)])
        if isinstance(outcome, Later):
            self._line_up(exchange)
            exchange.wait(outcome)
            if outcome.missed:
                self.loop.call_soon(exchange.ready)
            return False
        work = exchange.clocked(cast("Awaitable[Settled]", outcome))
        future: asyncio.Future[Settled] = asyncio.ensure_future(work, loop=self.loop)
        self._line_up(exchange)
        self._busy = True
        exchange.wait(future=future)
        return False

    def _line_up(self, exchange: Exchange) -> None:
        if not exchange.waits:
            self._line.append(exchange)

    def settle(self, exchange: Exchange, future: asyncio.Future[Settled]) -> None:
        """What a request waited for is in the future."""
        if self.transport is None:
            if not future.cancelled():
                future.exception()  # nobody is left to be told; looking at it keeps asyncio from complaining
            return
        self._busy = False
        exchange.future = None
        try:
            finished = self._conclude(exchange, future.result())
        except (Exception, asyncio.CancelledError) as failure:
            finished = self._excuse(exchange, failure)
        self._go_on(exchange, finished=finished)

    def answer(self, exchange: Exchange) -> None:
        """What a request waited for is in the exchange's `later`."""
        # The two know each other; who forgets one here spares the collector a request with its frame each time.
        later, exchange.later = exchange.later, None
        if self.transport is None:
            return
        try:
            assert later is not None, "it was waited for"
            outcome = later.outcome()
            if outcome.__class__ is bytes and len(self._line) == 1:
                reply = exchange.framed(outcome)
                self._line.clear()
                self.send((reply,))
                finished = True
            else:
                finished = self._conclude(exchange, outcome)
        except Exception as failure:
            finished = self._excuse(exchange, failure)
        self._go_on(exchange, finished=finished)

    def _go_on(self, exchange: Exchange, *, finished: bool) -> None:
        if finished:
            self.done(exchange.size)
        if self._waiting:
            self._start_waiting()
        if not self._gate.open:
            self._close_when_answered()

    def _finish(self, exchange: Exchange, parts: list[Records]) -> bool:
        """Sends a reply, or keeps it in line behind earlier ones. An empty one takes no place in the line."""
        if exchange.waits:
            exchange.parts = parts
            self._flush()
        elif self._line and parts:
            self._line_up(exchange)
            exchange.wait()
            exchange.parts = parts
        elif parts:
            self.send(parts)
        return True

    def _flush(self) -> None:
        """Sends the replies at the head of the line that are ready."""
        line = self._line
        ready: list[Records] = []
        while line and line[0].parts is not None:
            ready += line.pop(0).parts or ()
        if ready:
            self.send(ready)

    def _excuse(self, exchange: Exchange, failure: BaseException) -> bool:
        """A request went wrong: the client gets an error if its version's reply has one, else the connection ends."""
        route = exchange.route
        if isinstance(failure, Disconnect):
            self.reception.sparing.warning(
                f"{route} {failure.why}", "the connection from %s is closed by %s: %s", self, route, failure.why
            )
            self.close()
            return True
        _log.error("%s from %s failed", route, self, exc_info=failure)
        reply = exchange.excuse(failure)
        if reply is None:
            self.close()
            return True
        return self._finish(exchange, reply)

    def _drop_waiting(self) -> None:
        while self._waiting:
            frame, _ = self._waiting.pop()
            self.done(len(frame))

    def _close_when_answered(self) -> None:
        if self.state is State.CLOSING and not self._line and not self.backed_up:
            self.close()
