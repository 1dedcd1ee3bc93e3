"""The server's side of a SASL connection: frames in, what to answer, close or wait for out. No bytes, no clock.

The shell cuts frames and reads headers; of the bodies it decodes only keys 17 and 36 in versions that are served, and
hands over None for everything else: nothing complex is decoded for strangers. One frame is under way at a time: while
`Work` runs or a failure waits for its time nothing is read.

| state | ApiVersions (18) | SaslHandshake (17) | SaslAuthenticate (36) | another key |
|---|---|---|---|---|
| FIRST | told → HANDSHAKE; unsupported: told, stays | as below | close | close |
| HANDSHAKE | close | enabled → AUTHENTICATE; else 33, fail | close | close |
| AUTHENTICATE, v1 | 34, fail | 34, fail | the exchange → AUTHENTICATE, WORKING, COMPLETE or fail | 34, fail |
| AUTHENTICATE, v0 | bare frames only: the exchange, as above, but a failure has no words | | | |
| WORKING | nothing is read; the result → as the exchange says | | | |
| COMPLETE | served | begin again, if that may be → AUTHENTICATE; else 34 | 34 | served |
| COMPLETE, session over | close | begin again, if that may be; else close | close | close |
| FAILED | nothing is read | | | |

A login may begin again when its session has an end and the last time is a second away. It goes the same way, with two
more reasons to fail: another mechanism (told at the first SaslAuthenticate) and another principal. What was asked
before it is still answered.

Hot path: of a connection whose login is complete a frame needs this machine only when its key is 17 or 36 or
`session_ends_ms` (infinity without an end) has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from penstock.model.errors import (
    ILLEGAL_SASL_STATE,
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    ErrorCode,
)
from penstock.model.ids import Millis
from penstock.model.security import Principal
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.exchange import (
    Accepted,
    CheckToken,
    Derive,
    Identity,
    Rejected,
    ServerExchange,
    ServerStep,
    Token,
)

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36

REAUTHENTICATE_APART_MS: Final = 1_000
UNSUPPORTED_VERSIONS_MAX: Final = 3
"""How often a client may ask for an ApiVersions that nobody serves before it is taken for something else."""


class Moment(NamedTuple):
    """Both clocks: credentials end by the wall, sessions by the one that nobody sets."""

    wall_ms: Millis
    mono_ms: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What strangers may have until they are known. The shell holds to the numbers, this machine states them."""

    frame_bytes_max: int = 524_288  # sasl.server.max.receive.size
    login_ms_max: int = 10_000  # from accept to authenticated; Kafka has none but the idle one
    failure_delay_ms: int = 100  # connection.failed.authentication.delay.ms
    frames_max: int = 16  # ApiVersions, its repetitions, the handshake and the longest exchange need fewer


@dataclass(frozen=True, slots=True)
class Frame:
    """A request before it is served. `body` is None when it was not decoded, or could not be."""

    api_key: int
    api_version: int
    supported: bool = True
    body: SaslHandshakeRequest | SaslAuthenticateRequest | None = None


@dataclass(frozen=True, slots=True)
class Serve:
    """Not a matter of logins: ordinary dispatch."""


@dataclass(frozen=True, slots=True)
class TellVersions:
    """Answer ApiVersions in full; with version 0 and error 35 when the version is not served."""

    supported: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request with this message."""

    message: SaslHandshakeResponse | SaslAuthenticateResponse


@dataclass(frozen=True, slots=True)
class BareReply:
    """Answer with an int32 size and these bytes, without a header."""

    token: bytes


@dataclass(frozen=True, slots=True)
class RefuseInKind:
    """Answer the request in its own shape with this error, if its shape has one. The connection stays."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Work:
    """Do this and call `worked` with the result: `Derive.run` on a thread, `CheckToken` by the validator."""

    job: Derive | CheckToken


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The connection belongs to `principal` from now on; requests are served. After the reply has been queued."""

    principal: Principal
    identity: Identity
    mechanism: str
    lifetime_ms: int
    again: bool


@dataclass(frozen=True, slots=True)
class Fail:
    """Read nothing more, wait `delay_ms`, write `reply` if there is one, close. `why` and `name` are for the log."""

    delay_ms: int
    why: str
    reply: SaslHandshakeResponse | SaslAuthenticateResponse | RefuseInKind | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """Close at once, without a word. `expired`: counts among the connections killed because their session ended."""

    why: str
    expired: bool = False


Effect: TypeAlias = Serve | TellVersions | Reply | BareReply | RefuseInKind | Work | LoggedIn | Fail | Close


class _State(Enum):
    FIRST = "first"
    HANDSHAKE = "handshake"
    AUTHENTICATE = "authenticate"
    WORKING = "working"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """What a listener offers: how an exchange of each mechanism begins, and how long its sessions last.

    `max_reauth_ms` is `connections.max.reauth.ms` by mechanism, which listener prefixes can set apart; 0 is no end.
    """

    begin: Mapping[str, Callable[[], ServerExchange]]
    max_reauth_ms: Mapping[str, int]


class SaslServer:
    """The logins of one connection."""

    def __init__(self, mechanisms: Mechanisms, limits: Limits) -> None:
        self.limits = limits
        self.principal: Principal | None = None
        self.session_ends_ms = float("inf")
        self._mechanisms = mechanisms
        self._state = _State.FIRST
        self._frames = 0
        self._unsupported = 0
        self._mechanism = ""
        self._exchange: ServerExchange | None = None
        self._bare = False
        self._bad_mechanism = ""  # what the next SaslAuthenticate of a re-authentication is told
        self._session_mechanism = ""
        self._reauthenticated_ms: float | None = None

    @property
    def complete(self) -> bool:
        return self._state is _State.COMPLETE

    @property
    def expects_bare(self) -> bool:
        """Whether the next frame has no header: the handshake was of version 0."""
        return self._bare and self._state is _State.AUTHENTICATE

    @property
    def frame_bytes_max(self) -> int | None:
        """The largest frame to read now; None when the listener's own bound counts."""
        return None if self.complete else self.limits.frame_bytes_max

    def heard(self, frame: Frame, now: Moment) -> list[Effect]:
        """A request that was read."""
        match self._state:
            case _State.FIRST | _State.HANDSHAKE:
                return self._counted() or self._before_handshake(frame)
            case _State.AUTHENTICATE:
                return self._counted() or self._authenticate(frame, now)
            case _State.COMPLETE:
                return self._standing(frame, now)
        raise AssertionError(f"no frame is read in state {self._state.value}")

    def heard_bare(self, token: bytes, now: Moment) -> list[Effect]:
        """A frame without a header."""
        assert self.expects_bare, "bare frames follow a handshake of version 0"
        return self._counted() or self._tell_exchange(token, now)

    def worked(self, result: object, now: Moment) -> list[Effect]:
        """The result of the `Work` that was asked for last."""
        assert self._state is _State.WORKING, "no work was asked for"
        assert self._exchange is not None, "work belongs to an exchange"
        self._state = _State.AUTHENTICATE
        return self._obey(self._exchange.worked(result, now.wall_ms), now)

    def _counted(self) -> list[Effect]:
        self._frames += 1
        return self._closed("too many frames before the login") if self._frames > self.limits.frames_max else []

    def _before_handshake(self, frame: Frame) -> list[Effect]:
        if frame.api_key == API_VERSIONS and self._state is _State.FIRST:
            return self._tell_versions(frame)
        if frame.api_key != SASL_HANDSHAKE:
            return self._closed(f"a request with key {frame.api_key} before the SASL handshake")
        return self._handshake(frame)

    def _tell_versions(self, frame: Frame) -> list[Effect]:
        if frame.supported:
            self._state = _State.HANDSHAKE
            return [TellVersions(True)]
        self._unsupported += 1
        if self._unsupported > UNSUPPORTED_VERSIONS_MAX:
            return self._closed("an ApiVersions that nobody serves, again and again")
        return [TellVersions(False)]

    def _handshake(self, frame: Frame) -> list[Effect]:
        if not isinstance(frame.body, SaslHandshakeRequest):
            return self._closed("a SASL handshake that cannot be read")
        enabled = sorted(self._mechanisms.begin)
        begin = self._mechanisms.begin.get(frame.body.mechanism)
        if begin is None:
            refusal = SaslHandshakeResponse(error_code=UNSUPPORTED_SASL_MECHANISM.code, mechanisms=enabled)
            return self._failed("a mechanism that is not enabled here", refusal)
        self._mechanism = frame.body.mechanism
        self._bare = frame.api_version == 0
        self._exchange = begin()
        if self._session_mechanism and self._mechanism != self._session_mechanism:
            self._bad_mechanism = (
                f"SASL mechanism '{self._mechanism}' requested by client is not supported "
                f"for re-authentication of mechanism '{self._session_mechanism}'"
            )
        self._state = _State.AUTHENTICATE
        return [Reply(SaslHandshakeResponse(error_code=NONE.code, mechanisms=enabled))]

    def _authenticate(self, frame: Frame, now: Moment) -> list[Effect]:
        if self._bare:
            return self._closed("a request where a bare SASL token was expected")
        if frame.api_key != SASL_AUTHENTICATE:
            return self._failed(f"a request with key {frame.api_key} within a login", RefuseInKind(ILLEGAL_SASL_STATE))
        if not isinstance(frame.body, SaslAuthenticateRequest):
            return self._closed("a SaslAuthenticate that cannot be read")
        return self._tell_exchange(frame.body.auth_bytes, now)

    def _tell_exchange(self, token: bytes, now: Moment) -> list[Effect]:
        assert self._exchange is not None, "a handshake begins an exchange"
        if self._bad_mechanism:
            return self._refused(Rejected("another mechanism", self._bad_mechanism))
        return self._obey(self._exchange.heard(token, now.wall_ms), now)

    def _obey(self, step: ServerStep, now: Moment) -> list[Effect]:
        match step:
            case Token(data):
                return [self._token(data)]
            case Derive() | CheckToken():
                self._state = _State.WORKING
                return [Work(step)]
            case Accepted():
                return self._accepted(step, now)
            case Rejected():
                return self._refused(step)

    def _accepted(self, step: Accepted, now: Moment) -> list[Effect]:
        identity = step.identity
        principal = Principal("User", identity.name)
        again = self.principal is not None
        if self.principal is not None and principal != self.principal:
            told = (
                "Cannot change principals during re-authentication from "
                f"{self.principal.kind}.{self.principal.name}: {principal.kind}.{principal.name}"
            )
            return self._refused(Rejected("another principal", told, identity.name))
        lifetime_ms = self._begin_session(identity, now)
        self.principal = principal
        self._session_mechanism = self._mechanism
        self._state, self._exchange, self._frames = _State.COMPLETE, None, 0
        reply = self._token(step.token, lifetime_ms or 0)
        return [reply, LoggedIn(principal, identity, self._mechanism, lifetime_ms or 0, again)]

    def _begin_session(self, identity: Identity, now: Moment) -> int | None:
        """How long the session lasts; None for ever. A credential that has ended gives a session that has, too."""
        lifetime_ms = session_lifetime_ms(
            self._mechanisms.max_reauth_ms.get(self._mechanism, 0), identity.expires_at_ms, now.wall_ms
        )
        self.session_ends_ms = float("inf") if lifetime_ms is None else now.mono_ms + lifetime_ms
        return lifetime_ms

    def _standing(self, frame: Frame, now: Moment) -> list[Effect]:
        if frame.api_key == SASL_HANDSHAKE and self._may_begin_again(now.mono_ms):
            self._reauthenticated_ms = now.mono_ms
            self._bad_mechanism = ""
            return self._handshake(frame)
        if now.mono_ms > self.session_ends_ms:
            self._state = _State.FAILED
            return [Close("the session has ended", expired=True)]
        if frame.api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return [RefuseInKind(ILLEGAL_SASL_STATE)]
        return [Serve()]

    def _may_begin_again(self, mono_ms: float) -> bool:
        if self.session_ends_ms == float("inf"):
            return False
        return self._reauthenticated_ms is None or mono_ms - self._reauthenticated_ms >= REAUTHENTICATE_APART_MS

    def _token(self, data: bytes, lifetime_ms: int = 0) -> Effect:
        if self._bare:
            return BareReply(data)
        return Reply(SaslAuthenticateResponse(auth_bytes=data, session_lifetime_ms=lifetime_ms, error_message=None))

    def _refused(self, step: Rejected) -> list[Effect]:
        when = "re-authentication" if self.principal is not None else "authentication"
        general = f"Authentication failed during {when} due to invalid credentials with SASL mechanism "
        reply = SaslAuthenticateResponse(
            error_code=SASL_AUTHENTICATION_FAILED.code, error_message=step.told or general + self._mechanism
        )
        # Without headers there is no place for an error: the client sees the connection end.
        return self._failed(step.why, None if self._bare else reply, step.name)

    def _failed(
        self, why: str, reply: SaslHandshakeResponse | SaslAuthenticateResponse | RefuseInKind | None, name: str = ""
    ) -> list[Effect]:
        self._state, self._exchange = _State.FAILED, None
        return [Fail(self.limits.failure_delay_ms, why, reply, name)]

    def _closed(self, why: str) -> list[Effect]:
        self._state, self._exchange = _State.FAILED, None
        return [Close(why)]


def session_lifetime_ms(max_reauth_ms: int, expires_at_ms: Millis | None, wall_ms: Millis) -> int | None:
    """How long a login lasts: as long as the listener allows and the credential is good. None when neither ends."""
    ends = [max_reauth_ms] if max_reauth_ms > 0 else []
    if expires_at_ms is not None:
        ends.append(expires_at_ms - wall_ms)
    return max(0, min(ends)) if ends else None
