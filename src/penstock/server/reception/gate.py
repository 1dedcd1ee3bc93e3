"""The gate of a connection: may a request be served now? One table, asked before anything of a request is decoded.

| state | ApiVersions (18) | SaslHandshake (17), SaslAuthenticate (36) | another key |
|---|---|---|---|
| new: it has no place yet | kept | kept | kept |
| TLS handshake | dropped | dropped | dropped |
| SASL exchange | login | login | login |
| authenticated | served | login, where there are logins; else served (as error 34) | served |
| session over | login | login | login |
| authenticating again | login | login | login |
| closing, closed | dropped | dropped | dropped |

`login` hands the frame to the machine of logins, which knows the order of its own messages. Besides its state a
connection may have reasons to hold requests back (`Hold`): while it has one, what would be served or heard is kept.
"""

from __future__ import annotations

from enum import Enum, IntFlag
from typing import Final

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36


class State(Enum):
    """How far a connection has come. One of a listener without logins is authenticated once it is admitted."""

    NEW = "new"
    TLS_HANDSHAKE = "TLS handshake"
    SASL = "SASL exchange"
    AUTHENTICATED = "authenticated"
    SESSION_OVER = "session over"
    REAUTHENTICATING = "authenticating again"
    CLOSING = "closing"
    CLOSED = "closed"


class Hold(IntFlag):
    """Why requests of a connection wait although its state would let them in."""

    NOTHING = 0
    MUTED = 1
    """Over a quota."""
    WORKING = 2
    """A login waits for a thread, or a failed one for the time at which it is told."""


class Verdict(Enum):
    SERVE = "serve"
    LOGIN = "login"
    KEEP = "keep"
    DROP = "drop"


class Row:
    """What a state says to each API key."""

    __slots__ = ("_others", "_special")

    def __init__(self, others: Verdict, special: dict[int, Verdict] | None = None) -> None:
        self._others, self._special = others, special or {}

    def of(self, api_key: int) -> Verdict:
        return self._special.get(api_key, self._others)


TABLE: Final[dict[State, Row]] = {
    State.NEW: Row(Verdict.KEEP),
    State.TLS_HANDSHAKE: Row(Verdict.DROP),
    State.SASL: Row(Verdict.LOGIN),
    State.AUTHENTICATED: Row(Verdict.SERVE, {SASL_HANDSHAKE: Verdict.LOGIN, SASL_AUTHENTICATE: Verdict.LOGIN}),
    State.SESSION_OVER: Row(Verdict.LOGIN),
    State.REAUTHENTICATING: Row(Verdict.LOGIN),
    State.CLOSING: Row(Verdict.DROP),
    State.CLOSED: Row(Verdict.DROP),
}


class Gate:
    """The gate of one connection. `has_logins` is whether its listener wants to know who comes."""

    __slots__ = ("_has_logins", "_holds", "open", "state")

    def __init__(self, *, has_logins: bool = False) -> None:
        self._has_logins = has_logins
        self.state = State.NEW
        self._holds = Hold.NOTHING
        self.open = False
        """Whether every request is served, whatever its key: spares the common case the question."""

    @property
    def holds(self) -> Hold:
        return self._holds

    def enter(self, state: State) -> None:
        assert self.state is not State.CLOSED, "a connection that is gone does not come back"
        if self.state is State.CLOSING and state is not State.CLOSED:
            return  # a login that ends meanwhile changes nothing any more
        self.state = state
        self._look()

    def hold(self, reason: Hold) -> None:
        self._holds |= reason
        self._look()

    def release(self, reason: Hold) -> None:
        self._holds &= ~reason
        self._look()

    def verdict(self, api_key: int) -> Verdict:
        verdict = TABLE[self.state].of(api_key)
        if verdict is Verdict.DROP:
            return verdict
        if self._holds:
            return Verdict.KEEP
        if verdict is Verdict.LOGIN and not self._has_logins:
            return Verdict.SERVE
        return verdict

    def _look(self) -> None:
        self.open = self.state is State.AUTHENTICATED and not self._holds and not self._has_logins
