"""What stands before every request: another site can neither reach this console nor act through a browser that can.

A page of another site may send requests here in three ways, and each has its answer: under a name of its own that its
name server points at us (DNS rebinding; the Host header is not one of ours), as a form or script across origins (the
Origin or Sec-Fetch-Site header tells, and what changes something needs a header that no form can set), and in a frame.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.console.answers import BODY_MAX, refusal
from penstock.console.failures import Declined

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
COMES_BACK: Final = "/api/v1/login/oidc/back"
"""Where an identity provider, which is another site, sends a browser; what it brings is not believed as it is."""
BODY_TYPES: Final = frozenset({"application/json", "application/x-ndjson"})
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class OutsideGuard:
    """Refuses what does not come from a page of our own, and gives every answer the headers that say so."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there are no web sockets here

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            self._check_site(scope["path"], headers)
            if scope["method"] not in SAFE_METHODS:
                self._check_change(scope["method"], headers)
                receive = _bounded(receive)
            await self._app(scope, receive, guarded)
        except Declined as why:
            await refusal(why)(scope, receive, guarded)

    def _check_host(self, headers: Headers) -> None:
        host = host_name(headers.get("host", ""))
        if host not in self._hosts:
            raise Declined(
                421,
                "wrong_host",
                f"this console is not called {host!r}",
                "open it by the address that `penstock console` printed, or start it with --host-name NAME",
            )

    def _check_site(self, path: str, headers: Headers) -> None:
        """What is read may cost much, an explanation or a search; a page of another site may not have it done."""
        if not path.startswith("/api/") or path == COMES_BACK:
            return
        if headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
            raise Declined(403, "csrf", "a page of another site may ask for nothing here")

    def _check_change(self, method: str, headers: Headers) -> None:
        # A form sends POST and nothing else; before any other method a browser asks whether it may.
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() not in BODY_TYPES:
            raise Declined(403, "csrf", "a request that changes something has Content-Type: application/json")
        if int(headers.get("content-length") or 0) > BODY_MAX:
            raise _too_large()
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and host_name(urlsplit(origin).netloc) not in self._hosts:
            raise Declined(403, "csrf", f"a page of {origin} may change nothing here")
        browser = origin is not None or site is not None or "cookie" in headers
        if browser and headers.get("x-penstock") != "1":
            raise Declined(403, "csrf", "a request of a browser that changes something has the header X-Penstock: 1")


def host_name(host: str) -> str:
    """`localhost:8080` and `[::1]:8080` without their ports."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _bounded(receive: Receive) -> Receive:
    """A body whose length nobody told has a bound too."""
    got = 0

    async def counted() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > BODY_MAX:
            raise _too_large()
        return message

    return counted


def _too_large() -> Declined:
    return Declined(413, "too_large", f"the body has more than {BODY_MAX} bytes", "send it in several requests")
