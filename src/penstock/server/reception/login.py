"""Logs the client of one connection in: `security/sasl_server.py` decides, this reads frames and obeys.

Nothing complex is decoded for a stranger: of a request only its header is read, and the bodies of SaslHandshake and
SaslAuthenticate. One frame is under way at a time, of at most `sasl.server.max.receive.size`; while a thread works for
the login, or a failure waits for the time at which it is told, nothing is read.
"""

from __future__ import annotations

import asyncio
import logging
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

from penstock.protocol.codec import decode
from penstock.protocol.frame import read_request_header
from penstock.protocol.wire import Malformed
from penstock.security.exchange import CheckToken, Derive
from penstock.security.plain import MECHANISM as PLAIN
from penstock.security.sasl_server import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    BareReply,
    Close,
    Fail,
    Frame,
    LoggedIn,
    Moment,
    RefuseInKind,
    Reply,
    SaslServer,
    Serve,
    TellVersions,
    Work,
)
from penstock.security.scram.keys import BY_NAME
from penstock.server.reception.exchange import Exchange, Line
from penstock.server.reception.gate import Hold, State
from penstock.server.reception.logins import ScramRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.protocol.wire import Message
    from penstock.security.sasl_server import Effect
    from penstock.server.reception.dispatch import Route
    from penstock.server.reception.gate import Gate
    from penstock.server.reception.logins import Logins
    from penstock.server.reception.reception import Reception

_log = logging.getLogger("penstock.server.logins")
_SIZE: Final = Struct(">i")
_NAME_SHOWN_MAX: Final = 64


class Applicant(Line, Protocol):
    """A connection as its login sees it."""

    loop: asyncio.AbstractEventLoop
    frame_bytes_max: int

    def serve(self, frame: bytearray, received_ms: float) -> bool:
        """Ordinary dispatch of a frame."""

    def send(self, parts: Sequence[object]) -> None: ...
    def done(self, size: int) -> None: ...
    def abort(self) -> None: ...
    def logged_in(self) -> None:
        """`principal` is known for the first time."""

    def go_on(self) -> None:
        """What was kept back meanwhile may start."""


class Login:
    """The logins of one connection, one after the other."""

    __slots__ = (
        "_asked", "_connection", "_gate", "_logged_in_by", "_logins", "_machine", "_mechanism", "_name", "_reception",
        "_records", "_size", "_task", "_timer",
    )  # fmt: skip

    def __init__(self, connection: Applicant, gate: Gate, reception: Reception, logins: Logins) -> None:
        self._connection, self._gate, self._reception, self._logins = connection, gate, reception, logins
        self._records = ScramRecords(lambda: reception.node.metadata.image, logins.tokens)
        self._machine = SaslServer(logins.mechanisms(self._records), logins.limits)
        self._mechanism = "none"  # asked for in the last handshake
        self._name = self._logged_in_by = ""  # who logged in, and how
        self._asked: tuple[Route, int, float] | None = None  # what is answered; nothing for a bare token
        self._size = 0
        self._task: asyncio.Task[None] | None = None
        # The end of patience with a stranger, of a session, of a failure's delay.
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        connection = self._connection
        connection.frame_bytes_max = self._logins.limits.frame_bytes_max
        self._gate.enter(State.SASL)
        self._set_timer(self._logins.limits.login_ms_max, self._late)

    def end(self) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def concerns(self, changed: set[tuple[int, str]]) -> bool:
        """Whether whoever logged in did it by one of these credentials, or is about to."""
        record = self._records.record
        return record is not None and (record.mechanism, record.name) in changed

    def lost_token(self, changed: set[str]) -> bool:
        """Whether the delegation token of whoever logged in, or is about to, is among these and no longer as good."""
        token = self._records.token
        return token is not None and token.token_id in changed and not self._records.current

    def is_plain_user(self, names: set[str]) -> bool:
        return self._logged_in_by == PLAIN and self._name in names

    # Frames.

    def heard(self, frame: bytearray, received_ms: float) -> bool:
        """True when the frame is finished with, False when the answer is still to come."""
        self._size = len(frame)
        self._asked = None
        if self._machine.expects_bare:
            return self._obey(self._machine.heard_bare(bytes(frame), self._now()), frame, received_ms)
        try:
            read = self._read(frame, received_ms)
        except Malformed as broken:
            return self._close(Close(str(broken)))
        return self._obey(self._machine.heard(read, self._now()), frame, received_ms)

    def _read(self, frame: bytearray, received_ms: float) -> Frame:
        header, body = read_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        route = self._reception.dispatch.route(key, version)
        if route is None:
            return Frame(key, version, supported=False)
        self._asked = route, header.correlation_id, received_ms
        if key not in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return Frame(key, version)
        try:
            request, _ = decode(route.request_class, version, frame, body)
        except Malformed:
            return Frame(key, version)
        if key == SASL_HANDSHAKE:
            asked = getattr(request, "mechanism", "")
            self._mechanism = asked if asked in self._logins.succeeded else "none"
        return Frame(key, version, body=request)  # type: ignore[arg-type]  # the route's class is one of the two

    def _obey(self, effects: list[Effect], frame: bytearray, received_ms: float) -> bool:
        finished = True
        for effect in effects:
            match effect:
                case Serve() | TellVersions():
                    finished = self._connection.serve(frame, received_ms)
                case _:
                    finished = self._act(effect)
        if self._machine.complete is False and self._gate.state in (State.AUTHENTICATED, State.SESSION_OVER):
            self._gate.enter(State.REAUTHENTICATING)
        return finished

    def _act(self, effect: Effect) -> bool:
        match effect:
            case Reply(message):
                self._answer(message)
            case BareReply(token):
                self._connection.send((_SIZE.pack(len(token)) + token,))
            case RefuseInKind():
                self._refuse(effect)
            case LoggedIn():
                self._log_in(effect)
            case Close():
                return self._close(effect)
            case Work(job):
                self._gate.hold(Hold.WORKING)
                self._task = self._connection.loop.create_task(self._work(job), name="the work of a login")
                return False
            case Fail():
                self._fail(effect)
                return False
            case Serve() | TellVersions():
                raise AssertionError("these have a frame to be served")
        return True

    def _answer(self, message: Message) -> None:
        assert self._asked is not None, "only requests are answered by messages"
        route, correlation_id, received_ms = self._asked
        exchange = Exchange(
            self._reception, self._connection, route, correlation_id, self._size, received_ms, received_ms
        )
        self._connection.send(exchange.reply_with(message))

    def _refuse(self, refusal: RefuseInKind) -> None:
        if self._asked is not None and self._asked[0].has_error_code:
            self._answer(self._asked[0].make_response(error_code=refusal.error.code))

    # What takes time.

    async def _work(self, job: Derive | CheckToken) -> None:
        try:
            self._go_on_with(await self._result(job))
        except Exception:
            # No duty of the node: what a stranger's token does to us costs its own connection, as a request would.
            _log.exception("the login from %s cannot be judged", self._connection)
            self._connection.abort()

    def _go_on_with(self, result: object) -> None:
        self._task = None
        self._gate.release(Hold.WORKING)
        finished = True
        for effect in self._machine.worked(result, self._now()):
            finished = self._act(effect)
        if finished:
            self._connection.done(self._size)
            self._connection.go_on()

    async def _result(self, job: Derive | CheckToken) -> object:
        if isinstance(job, CheckToken):
            assert self._logins.bearers is not None, "tokens are asked for where they are offered"
            return await self._logins.bearers.judged(job.token)
        offload = self._reception.offload
        assert offload is not None, "nothing long is done on the loop"
        derived = await offload.call(job.run)
        self._records.keep(derived)
        return derived

    def _fail(self, fail: Fail) -> None:
        connection, logins = self._connection, self._logins
        if self._machine.principal is not None:
            logins.not_renewed += 1
        else:
            logins.failed[self._mechanism] += 1
        host = connection.client_host
        self._reception.sparing.warning(
            f"login {host}",
            "the login of %r from %s by %s failed: %s",
            fail.name[:_NAME_SHOWN_MAX],
            connection,
            self._mechanism,
            fail.why,
        )
        self._tell_audit(fail.name, fail.why)
        delay_ms = max(fail.delay_ms, logins.delays.failed(host, fail.name, self._now().mono_ms))
        self._gate.hold(Hold.WORKING)
        self._set_timer(delay_ms, lambda: self._tell(fail))

    def _tell_audit(self, name: str, why: str) -> None:
        connection, audit = self._connection, self._reception.node.audit
        if audit is not None:
            shown, listener = name[:_NAME_SHOWN_MAX], connection.listener.name
            audit.login_failed(connection.client_host, listener, connection.client_id, self._mechanism, shown, why)

    def _tell(self, fail: Fail) -> None:
        if isinstance(fail.reply, RefuseInKind):
            self._refuse(fail.reply)
        elif fail.reply is not None:
            self._answer(fail.reply)
        self._connection.close()

    def _close(self, close: Close) -> bool:
        if close.expired:
            self._logins.expired += 1
            _log.info("the connection from %s is closed: %s", self._connection, close.why)
        else:
            self._reception.malformed += 1
            host = self._connection.client_host
            self._reception.sparing.warning(
                f"login {host}", "the connection from %s is closed: %s", self._connection, close.why
            )
        self._connection.close()
        return True

    # Sessions.

    def _log_in(self, login: LoggedIn) -> None:
        connection, logins = self._connection, self._logins
        if login.mechanism in BY_NAME and not self._records.current:
            self._close(Close("the password was changed, or the token ended, during the login"))
            return
        self._name, self._logged_in_by = login.identity.name, login.mechanism
        # A failure is counted for the name that was claimed, which is the id of a token.
        claimed = self._name if self._records.token is None else self._records.token.token_id
        logins.delays.succeeded(connection.client_host, claimed)
        connection.principal, connection.by_token = login.principal, login.identity.by_delegation_token
        connection.frame_bytes_max = self._reception.frame_bytes_max
        self._set_session()
        if login.again:
            logins.renewed += 1
            self._gate.enter(State.AUTHENTICATED)
            return
        logins.succeeded[login.mechanism] += 1
        connection.logged_in()

    def _set_session(self) -> None:
        ends_ms = self._machine.session_ends_ms
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if ends_ms != float("inf"):
            # Loops fire up to a millisecond early, and a session is over only after its end.
            self._set_timer(max(0.0, ends_ms - self._now().mono_ms) + 2.0, self._over)

    def _over(self) -> None:
        """Whoever speaks from now on is closed, unless it logs in again; an idle connection may stay."""
        self._timer = None
        if self._gate.state is State.AUTHENTICATED:
            self._gate.enter(State.SESSION_OVER)

    def _late(self) -> None:
        self._timer = None
        seconds = self._logins.limits.login_ms_max / 1_000
        host = self._connection.client_host
        self._logins.failed[self._mechanism] += 1
        self._reception.sparing.warning(
            f"login {host}", "the connection from %s is closed: no login within %g s", self._connection, seconds
        )
        self._tell_audit("", f"no login within {seconds:g} s")
        self._connection.abort()

    def _set_timer(self, delay_ms: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._connection.loop.call_later(delay_ms / 1_000, then)

    def _now(self) -> Moment:
        clock = self._reception.clock
        return Moment(clock.now_ms(), clock.monotonic_ms())
