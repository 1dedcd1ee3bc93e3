"""Who comes in: by a cookie of a login, by credentials of a script, by a header of a proxy, or anybody, as was told."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.auditing import AuditTrail
from penstock.console.failures import Declined, declined
from penstock.console.people.logins import TEXT_MAX, Logins
from penstock.console.people.oidc import OidcLogins
from penstock.console.people.proxies import came_from, is_believed, named_by
from penstock.console.people.sessions import LASTS_S, LoggedIn, Sessions
from penstock.console.people.tries import Tries
from penstock.console.settings import ConsoleSettings
from penstock.model.errors import PenstockError

SCRIPT_LASTS_S: Final = 300.0
"""Credentials that come with every request are tried anew after so long: what was revoked lets in no longer."""
REFUSED_S: Final = 10.0
REFUSED_MAX: Final = 1_000
COMING_MAX: Final = 100
AWAY_AGAIN_S: Final = 30.0

Login = Callable[[], Coroutine[Any, Any, LoggedIn]]


class Door:
    """Knows everybody who is inside."""

    def __init__(self, settings: ConsoleSettings, sessions: Sessions, logins: Logins, trail: AuditTrail) -> None:
        self._settings, self.sessions, self._logins, self._trail = settings, sessions, logins, trail
        self._tries = Tries()
        self.oidc = OidcLogins(settings.oidc) if settings.oidc is not None else None
        self._known: dict[str, str] = {}
        """Sessions of those who have no cookie, by whom a proxy named or by the hash of credentials."""
        self._refused: OrderedDict[str, tuple[float, Declined]] = OrderedDict()
        self._coming: dict[str, asyncio.Task[LoggedIn]] = {}
        self._rejoining: dict[str, asyncio.Task[None]] = {}
        self._rejoin_at: dict[str, float] = {}

    @property
    def open(self) -> bool:
        """Whether nobody has to log in."""
        return self._settings.login == "none"

    async def who(self, request: Request) -> LoggedIn | None:
        """Who asks; None for nobody that is known. Declined for a proxy that says nothing, and wrong credentials."""
        if self._settings.login == "proxy":
            return await self._by_proxy(request)
        known = self.sessions.find(request.cookies.get(self.cookie_name(request)))
        header = request.headers.get("authorization")
        return known if known is not None or header is None else await self._by_header(request, header)

    async def by_password(self, request: Request, user: str, password: str) -> str:
        """What the cookie is to say. A person who comes again leaves the session of before."""
        if self._settings.login != "kafka":
            raise Declined(400, "bad_request", f"this console logs people in by {self._settings.login}")
        session = await self._arrived(request, "password", user, lambda: self._logins.by_password(user, password))
        await self._leave(request)
        return await self.sessions.begin(session)

    async def by_bearer(self, request: Request, token: str) -> str:
        session = await self._arrived(request, "oidc", "", lambda: self._logins.by_bearer(token))
        await self._leave(request)
        return await self.sessions.begin(session)

    async def out(self, request: Request) -> None:
        session = await self._leave(request)
        if session is not None:
            await self._trail.write("logout", "done", session.principal, self.address_of(request))

    async def close(self) -> None:
        for task in (*self._coming.values(), *self._rejoining.values()):
            task.cancel()
        await self.sessions.close()

    def address_of(self, request: Request) -> str:
        return came_from(request, self._settings)

    def is_https(self, request: Request) -> bool:
        """Whether the browser speaks TLS, to us or to a proxy in front."""
        if self._settings.behind_tls or request.url.scheme == "https":
            return True
        told = request.headers.get("x-forwarded-proto", "") == "https"
        return told and is_believed(request, self._settings.proxy_from)

    def cookie_name(self, request: Request) -> str:
        """A name that begins with `__Host-` is set by this host alone, over TLS alone, and for all of it."""
        return "__Host-penstock" if self.is_https(request) else "penstock"

    def give_cookie(self, request: Request, response: Response, value: str | None) -> None:
        name, secure = self.cookie_name(request), self.is_https(request)
        if value is None:
            response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
            return
        lasts_s = round(LASTS_S)
        response.set_cookie(name, value, max_age=lasts_s, path="/", secure=secure, httponly=True, samesite="lax")

    async def _leave(self, request: Request) -> LoggedIn | None:
        before = self.sessions.find(request.cookies.get(self.cookie_name(request)))
        if before is not None:
            await self.sessions.end(before)
        return before

    async def _arrived(self, request: Request, way: str, name: str, login: Login) -> LoggedIn:
        """Somebody who comes in, with a line in the audit. Whoever was wrong before waits for it."""
        address = self.address_of(request)
        try:
            async with self._tries.turn(address, name):
                session = await login()
        except PenstockError as failure:
            why = declined(failure).code
            await self._trail.write("login", "failed", f"User:{name[:100]}" if name else "", address, by=way, why=why)
            raise
        try:
            clusters = list(session.acting)
            await self._trail.write("login", "done", session.principal, address, by=way, clusters=clusters)
        except Declined:
            await self.sessions.end(session)
            raise
        return session

    # Without a cookie.

    async def _by_header(self, request: Request, header: str) -> LoggedIn:
        """A script, which shows its credentials with every request."""
        key = hashlib.sha256(f"{self.address_of(request)} {header}".encode()).hexdigest()
        known = self.sessions.find(self._known.get(key))
        return known or await self._once(key, lambda: self._shown(request, header))

    async def _shown(self, request: Request, header: str) -> LoggedIn:
        kind, _, shown = header.partition(" ")
        kind, shown, logins = kind.lower(), shown.strip(), self._logins
        if kind == "basic" and self._settings.login == "kafka":
            user, password = _user_and_password(shown)
            return await self._arrived(
                request, "basic", user, lambda: logins.by_password(user, password, SCRIPT_LASTS_S)
            )
        token_id, dot, hmac = shown.partition(".")
        if kind == "bearer" and dot and "." not in hmac:
            return await self._arrived(
                request, "token", token_id, lambda: logins.by_delegation(token_id, hmac, SCRIPT_LASTS_S)
            )
        if kind == "bearer" and self._settings.login == "oidc" and len(shown) <= 16 * TEXT_MAX:
            return await self._arrived(request, "bearer", "", lambda: logins.by_bearer(shown, SCRIPT_LASTS_S))
        raise Declined(
            401,
            "not_logged_in",
            "this console takes no such credentials",
            "Basic with a user of the cluster (--login kafka), Bearer with a delegation token as ID.HMAC, or with an"
            " access token (--login oidc)",
        )

    async def _by_proxy(self, request: Request) -> LoggedIn:
        name, logins = named_by(request, self._settings.proxy_header, self._settings.proxy_from), self._logins
        known = self.sessions.find(self._known.get(name))
        if known is None:

            async def login() -> LoggedIn:
                return logins.made(await logins.by_name(f"User:{name}"))

            return await self._once(name, lambda: self._arrived(request, "proxy", name, login))
        if known.away:
            self._rejoin(known)
        return known

    def _rejoin(self, session: LoggedIn) -> None:
        """Clusters that were away are asked again beside what is going on: whom a proxy names cannot log in anew."""
        now = time.monotonic()
        if session.key in self._rejoining or now < self._rejoin_at.get(session.key, 0.0):
            return
        self._rejoin_at = {key: at for key, at in self._rejoin_at.items() if at > now}
        self._rejoin_at[session.key] = now + AWAY_AGAIN_S

        async def join() -> None:
            try:
                self._logins.join(session, await self._logins.by_name(session.principal, session.away))
            except PenstockError:
                return  # away still; a request after a while tries again

        task = self._rejoining[session.key] = asyncio.create_task(join())
        task.add_done_callback(lambda _: self._rejoining.pop(session.key, None))

    async def _once(self, key: str, login: Login) -> LoggedIn:
        """Requests that come together share one login; one that was just refused is not tried again."""
        until, why = self._refused.get(key, (0.0, None))
        if why is not None and time.monotonic() < until:
            raise Declined(why.status, why.code, why.message, why.attempt, **why.params)
        task = self._coming.get(key)
        if task is None:
            if len(self._coming) >= COMING_MAX:
                raise Declined(429, "too_many", "too many logins are under way", "try again in some seconds")
            task = self._coming[key] = asyncio.create_task(self._begin(key, login))
            task.add_done_callback(lambda done: self._came(key, done))
        # A request that ends must not end the login that others wait for.
        await asyncio.wait([task])
        return task.result()

    async def _begin(self, key: str, login: Login) -> LoggedIn:
        try:
            session = await login()
        except Declined as why:
            if why.status in (401, 403):
                self._refused[key] = time.monotonic() + REFUSED_S, why
                while len(self._refused) > REFUSED_MAX:
                    self._refused.popitem(last=False)
            raise
        name = await self.sessions.begin(session)
        self._known = {each: cookie for each, cookie in self._known.items() if self.sessions.is_open(cookie)}
        self._known[key] = name
        return session

    def _came(self, key: str, task: asyncio.Task[LoggedIn]) -> None:
        self._coming.pop(key, None)
        if not task.cancelled():
            task.exception()  # told to those who wait, if there are any


def _user_and_password(shown: str) -> tuple[str, str]:
    try:
        user, colon, password = base64.b64decode(shown, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user, colon, password = "", "", ""
    if not colon:
        raise Declined(401, "wrong_login", "the credentials are no base64 of user:password")
    return user, password


def ends_ms(session: LoggedIn) -> int:
    return time.time_ns() // 1_000_000 + round(session.ends_in_s * 1_000)
