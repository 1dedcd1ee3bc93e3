"""The client's side of a SASL connection: what to send next, when to log in again, and why a login failed.

The shell has asked ApiVersions before (on SASL listeners it is answered to anybody) and knows which version of
SaslAuthenticate the broker speaks; it sends what it is told, on one connection, one request at a time, and hands the
answers back.

| state | answer to SaslHandshake | answer to SaslAuthenticate | result of work | `again` |
|---|---|---|---|---|
| HANDSHAKE | 0: first token → AUTHENTICATE; 33 or another error: failed | – | – | – |
| AUTHENTICATE | – | 0: the exchange's next token, work, or done → READY; error: failed | – | – |
| WORKING | – | – | the exchange's next token | – |
| READY | – | – | – | a new exchange → HANDSHAKE |

Until a re-authentication is done nothing else may be sent on the connection (`busy`); answers to what was sent before
still come and count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from penstock.model.errors import NONE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM, ErrorCode, error_of
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.exchange import ClientExchange, ClientStep, Derive, Finished, Rejected, Token

HANDSHAKE_VERSION: Final = 1
"""Version 0 is followed by bare frames, in which a broker cannot say what was wrong."""
REAUTHENTICATE_FROM: Final = 0.85
REAUTHENTICATE_SPREAD: Final = 0.10


@dataclass(frozen=True, slots=True)
class Send:
    """Send this and call `replied` with the answer."""

    request: SaslHandshakeRequest | SaslAuthenticateRequest


@dataclass(frozen=True, slots=True)
class Work:
    """Run it off the loop and call `worked` with the result."""

    job: Derive


@dataclass(frozen=True, slots=True)
class Ready:
    """The login is good: requests may be sent. Log in again at `again_at_ms`; None when the session has no end."""

    again_at_ms: float | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The login failed: hang up. Trying again with the same credentials does not help."""

    error: ErrorCode
    why: str


Effect: TypeAlias = Send | Work | Ready | Failed


class _State(Enum):
    HANDSHAKE = "handshake"
    AUTHENTICATE = "authenticate"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


class SaslClient:
    """The logins of one connection. `share` is a random number from 0 to 1, to spread clients that began together."""

    def __init__(self, mechanism: str, share: float) -> None:
        self._mechanism = mechanism
        self._share = share
        self._state = _State.READY
        self._exchange: ClientExchange | None = None

    @property
    def busy(self) -> bool:
        """Whether a login is under way, so that nothing else may be sent."""
        return self._state is not _State.READY

    def begin(self, exchange: ClientExchange) -> Effect:
        """Log in, for the first time or again."""
        assert self._state is _State.READY, "one login at a time"
        self._exchange = exchange
        self._state = _State.HANDSHAKE
        return Send(SaslHandshakeRequest(mechanism=self._mechanism))

    def replied(self, answer: SaslHandshakeResponse | SaslAuthenticateResponse, mono_ms: float) -> Effect:
        assert self._exchange is not None, "an answer without a login"
        if isinstance(answer, SaslHandshakeResponse):
            assert self._state is _State.HANDSHAKE, "an answer to a handshake that was not sent"
            return self._shaken(answer)
        assert self._state is _State.AUTHENTICATE, "an answer to a token that was not sent"
        return self._authenticated(answer, mono_ms)

    def worked(self, result: bytes) -> Effect:
        assert self._state is _State.WORKING, "no work was asked for"
        assert self._exchange is not None, "work belongs to an exchange"
        return self._obey(self._exchange.worked(result))

    def _shaken(self, answer: SaslHandshakeResponse) -> Effect:
        if answer.error_code == UNSUPPORTED_SASL_MECHANISM.code:
            offered = ", ".join(name[:100] for name in answer.mechanisms[:10]) or "none"
            words = f"the broker does not offer {self._mechanism}; it offers {offered}"
            return self._failed(UNSUPPORTED_SASL_MECHANISM, words)
        if answer.error_code != NONE.code:
            return self._failed(error_of(answer.error_code), "the broker refused the SASL handshake")
        assert self._exchange is not None, "checked by the caller"
        return self._obey(self._exchange.start())

    def _authenticated(self, answer: SaslAuthenticateResponse, mono_ms: float) -> Effect:
        if answer.error_code != NONE.code:
            why = answer.error_message or "the broker did not say why"
            return self._failed(error_of(answer.error_code), why)
        assert self._exchange is not None, "checked by the caller"
        step = self._exchange.heard(answer.auth_bytes)
        if isinstance(step, Finished):
            self._state, self._exchange = _State.READY, None
            return Ready(self._again_at_ms(answer.session_lifetime_ms, mono_ms))
        return self._obey(step)

    def _again_at_ms(self, lifetime_ms: int, mono_ms: float) -> float | None:
        if lifetime_ms <= 0:
            return None
        return mono_ms + lifetime_ms * (REAUTHENTICATE_FROM + REAUTHENTICATE_SPREAD * self._share)

    def _obey(self, step: ClientStep) -> Effect:
        match step:
            case Token(data):
                self._state = _State.AUTHENTICATE
                return Send(SaslAuthenticateRequest(auth_bytes=data))
            case Derive():
                self._state = _State.WORKING
                return Work(step)
            case Rejected():
                return self._failed(SASL_AUTHENTICATION_FAILED, step.why)
        raise AssertionError("an exchange finishes when it hears the server's last word")

    def _failed(self, error: ErrorCode, why: str) -> Failed:
        self._state, self._exchange = _State.FAILED, None
        return Failed(error, why)
