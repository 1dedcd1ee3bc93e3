"""Who comes in: by a cookie of a login, by a header of a proxy, or anybody, as the console was told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.failures import Declined
from penstock.console.messages.thread import ReadingThread
from penstock.console.people.acting import Acting, as_owner_of
from penstock.console.people.logins import Tries, login_by_bearer, login_by_password, make_token, session_of
from penstock.console.people.oidc import OidcLogins
from penstock.console.people.proxies import named_by, refuse_super_user
from penstock.console.people.sessions import LASTS_S, LoggedIn, Sessions
from penstock.console.settings import ConsoleSettings

PROXIED_MAX: Final = 1_000


class Door:
    """Knows everybody who is inside."""

    def __init__(
        self, settings: ConsoleSettings, sessions: Sessions, own: Mapping[str, Acting], reading: ReadingThread
    ) -> None:
        self._settings, self.sessions, self._own, self._reading = settings, sessions, own, reading
        self._addresses = {address.name: address for address in settings.clusters}
        self._tries = Tries()
        self.oidc = OidcLogins(settings.oidc) if settings.oidc is not None else None
        self._proxied: dict[str, str] = {}
        self._coming = asyncio.Lock()

    @property
    def open(self) -> bool:
        """Whether nobody has to log in."""
        return self._settings.login == "none"

    async def who(self, request: Request) -> LoggedIn | None:
        """Who asks; None for nobody that is known. Declined for a proxy that says nothing."""
        if self._settings.login == "proxy":
            return await self._by_proxy(request)
        return self.sessions.find(request.cookies.get(cookie_name(request)))

    async def by_password(self, request: Request, user: str, password: str) -> str:
        """What the cookie is to say. A person who comes again leaves the session of before."""
        if self._settings.login != "kafka":
            raise Declined(400, "bad_request", f"this console logs people in by {self._settings.login}")
        peer = request.client.host if request.client else ""
        self._tries.check(f"from {peer}", f"as {user[:100]}")
        session = await login_by_password(self._own, user, password, self._reading)
        self._tries.forget(f"from {peer}", f"as {user[:100]}")
        await self._leave(request)
        return await self.sessions.begin(session)

    async def by_bearer(self, request: Request, token: str) -> str:
        session = await login_by_bearer(self._own, token, self._reading)
        await self._leave(request)
        return await self.sessions.begin(session)

    async def out(self, request: Request) -> None:
        await self._leave(request)

    async def _leave(self, request: Request) -> None:
        before = self.sessions.find(request.cookies.get(cookie_name(request)))
        if before is not None:
            await self.sessions.end(before)

    async def _by_proxy(self, request: Request) -> LoggedIn:
        settings = self._settings
        peer = request.client.host if request.client else None
        name = named_by(request.headers.get(settings.proxy_header), peer, settings.proxy_from)
        known = self.sessions.find(self._proxied.get(name))
        if known is not None:
            return known
        async with self._coming:
            known = self.sessions.find(self._proxied.get(name))
            if known is None:
                known = await self._begin_proxied(name)
        return known

    async def _begin_proxied(self, name: str) -> LoggedIn:
        principal, tokens = f"User:{name}", {}
        for cluster, address in self._addresses.items():
            token = await make_token(self._own[cluster].admin, self._own[cluster], principal)
            await refuse_super_user(address, principal, as_owner_of(token))
            tokens[cluster] = token
        session = session_of(self._addresses, tokens, self._reading)
        while len(self._proxied) >= PROXIED_MAX:
            del self._proxied[next(iter(self._proxied))]
        self._proxied[name] = await self.sessions.begin(session)
        return session


def is_https(request: Request) -> bool:
    """Whether the browser speaks TLS, to us or to a proxy in front."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"


def cookie_name(request: Request) -> str:
    """A name that begins with `__Host-` is set by this host alone, over TLS alone, and for all of it."""
    return "__Host-penstock" if is_https(request) else "penstock"


def give_cookie(request: Request, response: Response, value: str | None) -> None:
    name = cookie_name(request)
    if value is None:
        response.delete_cookie(name, path="/", secure=is_https(request), httponly=True, samesite="lax")
        return
    response.set_cookie(
        name, value, max_age=round(LASTS_S), path="/", secure=is_https(request), httponly=True, samesite="lax"
    )


def ends_ms(session: LoggedIn) -> int:
    return time.time_ns() // 1_000_000 + round(session.ends_in_s * 1_000)
