"""Logging in by SASL on a dialled link, right after ApiVersions, and again before the session ends.

`security/sasl_client.py` decides what to send; this sends it, runs what takes long off the loop, and holds back
everything else meanwhile: until a login is done the peer reads nothing but its tokens. Answers to what was asked before
still come. A login that fails ends the link.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from penstock.model.errors import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    PenstockError,
)
from penstock.model.secret import Secret
from penstock.protocol.wire import schema_of
from penstock.security.exchange import ClientExchange
from penstock.security.jaas.logins import PlainLogin, ScramLogin, parse_login
from penstock.security.oauth.messages import MECHANISM as OAUTHBEARER
from penstock.security.oauth.renewal import NoToken
from penstock.security.plain import MECHANISM as PLAIN
from penstock.security.plain import PlainClient
from penstock.security.sasl_client import HANDSHAKE_VERSION, Effect, Failed, Ready, SaslClient, Send, Work
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import BY_NAME, RANDOM_BYTES, nonce_of
from penstock.transport.dial import FIRST_REPLY_BYTES_MAX, Link, LinkError, LoginFailed, Severed
from penstock.transport.intake import Intake

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
HELD_BACK_MAX: Final = 10_000
"""Requests that wait for a login to be renewed; whoever sends on without answers has more than any client has."""
RENEWAL_TIMEOUT_MS: Final = 30_000
PASSWORD_MECHANISMS: Final = (PLAIN, *BY_NAME)
MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)

_TRY_ANOTHER_TOKEN: Final = "the broker's log says what is wrong with the access token"
_TRY: Final = {
    SASL_AUTHENTICATION_FAILED: "check the user's name and password, and that the user exists for this mechanism",
    ILLEGAL_SASL_STATE: "is this a listener with SASL? If not, set security.protocol to SSL or PLAINTEXT",
    UNSUPPORTED_SASL_MECHANISM: "set sasl.mechanism to one that it offers",
}

Run = Callable[..., Awaitable[Any]]


class BadLogin(PenstockError):
    """Properties that name no login that we can make. Never shows a secret."""


class Credentials(Protocol):
    """How to log in: a mechanism, and one exchange for every login."""

    @property
    def mechanism(self) -> str: ...
    async def begin(self, run: Run, *, again: bool = False) -> ClientExchange:
        """One login; `again` when a session is about to end. `run` runs a function off the loop.

        `NoToken` when what to log in with has to be fetched, and cannot be.
        """


@dataclass(frozen=True, slots=True)
class PasswordCredentials:
    """A name and a password, for PLAIN and SCRAM. `token`: those of a delegation token."""

    mechanism: str
    name: str
    password: Secret
    token: bool = False

    async def begin(self, run: Run, *, again: bool = False) -> ClientExchange:
        return self.exchange()

    def exchange(self) -> ClientExchange:
        if self.mechanism == PLAIN:
            return PlainClient(self.name, self.password)
        nonce = nonce_of(secrets.token_bytes(RANDOM_BYTES))
        return ScramClient(BY_NAME[self.mechanism], self.name, self.password, nonce, token=self.token)


def credentials_of(mechanism: str, jaas: str) -> PasswordCredentials:
    """From `sasl.mechanism` and `sasl.jaas.config`. `BadLogin` or `BadJaas` when they name no login."""
    check_mechanism(mechanism)
    login = parse_login(jaas, mechanism)
    assert isinstance(login, PlainLogin | ScramLogin), "these are the modules of the mechanisms that were checked"
    if not login.name or login.password is None:
        raise BadLogin("sasl.jaas.config names no username, or no password, to log in with")
    token = isinstance(login, ScramLogin) and login.token
    return password_credentials(mechanism, login.name, login.password, token=token)


def password_credentials(mechanism: str, name: str, password: Secret, *, token: bool = False) -> PasswordCredentials:
    check_mechanism(mechanism)
    found = PasswordCredentials(mechanism, name, password, token)
    try:
        found.exchange()
    except ValueError as wrong:
        raise BadLogin(str(wrong)) from None
    return found


def check_mechanism(mechanism: str) -> None:
    """Those with a name and a password."""
    if mechanism in PASSWORD_MECHANISMS:
        return
    if mechanism == OAUTHBEARER:
        raise BadLogin(f"sasl.mechanism is {OAUTHBEARER}, which logs in by access tokens, not by a name and a password")
    raise BadLogin(f"sasl.mechanism is {mechanism[:100]!r}; this side logs in by {', '.join(MECHANISMS)}")


class AuthenticatedLink(Link):
    """A link that logs in as part of `negotiate`, and again by itself before its session ends."""

    __slots__ = ("_credentials", "_held_back", "_of_login", "_renewal", "_renewal_timer", "_run", "_sasl")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        intake: Intake,
        host: str,
        port: int,
        frame_bytes_max: int,
        credentials: Credentials,
        run: Run,
    ) -> None:
        """`run` runs a function off the loop."""
        super().__init__(loop, intake, host, port, frame_bytes_max)
        self._credentials, self._run = credentials, run
        self._sasl = SaslClient(credentials.mechanism, share=random.random())
        self._held_back: list[Sequence[Any]] | None = None
        self._of_login = False
        self._renewal: asyncio.Task[None] | None = None
        self._renewal_timer: asyncio.TimerHandle | None = None

    async def negotiate(self, name: str = "penstock", version: str = "0", timeout_ms: float = 30_000) -> None:
        """Versions first, then the login. `LoginFailed` when that is not taken, or takes too long."""
        await super().negotiate(name, version, timeout_ms)
        # Before its login a peer has proved nothing, and gets no more of our memory than its versions may take.
        whole, self.frame_bytes_max = self.frame_bytes_max, FIRST_REPLY_BYTES_MAX
        await self._log_in(timeout_ms)
        self.frame_bytes_max = whole

    def send(self, parts: Sequence[Any]) -> None:
        if self._held_back is None or self._of_login:
            super().send(parts)
        elif len(self._held_back) < HELD_BACK_MAX:
            self._held_back.append(parts)
        else:
            self._sever(f"{HELD_BACK_MAX} requests wait for the login to be renewed")

    def lost(self, cause: Exception | None) -> None:
        if self._renewal_timer is not None:
            self._renewal_timer.cancel()
            self._renewal_timer = None
        if self._renewal is not None and not self._sasl.busy:
            # It still waits for its token, and no answer will end it.
            self._renewal.cancel()
        self._held_back = None
        super().lost(cause)

    async def _log_in(self, timeout_ms: float, *, again: bool = False) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                begun = await self._begun(again)
                if again and self.up:
                    # From here on the peer reads nothing but tokens. Ours was fetched before, which may take long.
                    self._held_back = []
                ready = await self._exchanged(begun, timeout_ms)
        except TimeoutError:
            raise Severed(self.host, self.port, f"no login within {timeout_ms:.0f} ms") from None
        if ready.again_at_ms is not None:
            again_in_s = ready.again_at_ms / 1_000 - self.loop.time()
            self._renewal_timer = self.loop.call_later(max(again_in_s, 0), self._renew)

    async def _begun(self, again: bool) -> ClientExchange:
        try:
            return await self._credentials.begin(self._run, again=again)
        except NoToken as failure:
            why = f"no access token to log in with: {failure}"
            if failure.again:
                raise Severed(self.host, self.port, why) from None
            raise LoginFailed(self.host, self.port, why, SASL_AUTHENTICATION_FAILED) from None

    async def _exchanged(self, begun: ClientExchange, timeout_ms: float) -> Ready:
        effect: Effect = self._sasl.begin(begun)
        while True:
            match effect:
                case Send(request):
                    reply = await self._ask(request, timeout_ms)
                    effect = self._sasl.replied(reply, self.loop.time() * 1_000)
                case Work(job):
                    effect = self._sasl.worked(await self._run(job.run))
                case Ready():
                    return effect
                case Failed(error, why):
                    advice = _TRY.get(error)
                    if error == SASL_AUTHENTICATION_FAILED and self._credentials.mechanism == OAUTHBEARER:
                        advice = _TRY_ANOTHER_TOKEN
                    words = f"the login failed: {why}" + ("" if advice is None else f"; {advice}")
                    raise LoginFailed(self.host, self.port, words, error)

    def _ask(self, request: Any, timeout_ms: float) -> asyncio.Future[Any]:
        key = schema_of(request.__class__).key
        if key == SASL_HANDSHAKE and self.versions.get(key, (0, -1))[1] < HANDSHAKE_VERSION:
            why = f"the login failed: it has no SASL handshake; {_TRY[ILLEGAL_SASL_STATE]}"
            raise LoginFailed(self.host, self.port, why, ILLEGAL_SASL_STATE)
        version = HANDSHAKE_VERSION if key == SASL_HANDSHAKE else self.newest(key)
        self._of_login = True
        try:
            return self.request(request, version, timeout_ms)
        finally:
            self._of_login = False

    # Again.

    def _renew(self) -> None:
        self._renewal_timer = None
        if self.up:
            self._renewal = self.loop.create_task(self._renewed())

    async def _renewed(self) -> None:
        try:
            await self._log_in(RENEWAL_TIMEOUT_MS, again=True)
        except LinkError as failure:
            self._sever(f"the login could not be renewed: {failure.why}")
            return
        held_back, self._held_back = self._held_back, None
        for parts in held_back or ():
            self.send(parts)
