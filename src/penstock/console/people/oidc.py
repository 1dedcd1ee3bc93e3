"""The way to an identity provider and back (OpenID Connect, authorization code with PKCE).

What comes back is a code, which is traded for an access token over a connection of our own; brokers check that token by
OAUTHBEARER and say whose it is. Nothing that a browser brought is believed beyond the code, and that only together with
the state and the verifier that this console made for that very browser.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from penstock.console.failures import Declined
from penstock.console.settings import OidcSettings
from penstock.model.errors import PenstockError
from penstock.transport.web import address_of, ask

UNDER_WAY_MAX: Final = 1_000
UNDER_WAY_S: Final = 600.0
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class LoginUnderWay:
    """A browser that was sent to the provider; `binding` is in its cookie, so that no other can come back for it."""

    binding: str
    verifier: str
    redirect: str
    then: str
    began: float


class OidcLogins:
    """Logins by one identity provider."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._under_way: OrderedDict[str, LoginUnderWay] = OrderedDict()
        self._provider: dict[str, Any] | None = None

    async def begin(self, redirect: str, then: str) -> tuple[str, str]:
        """Where to send a browser, and what its cookie is to say until it is back."""
        provider = await self._discovered()
        state, verifier, binding = (secrets.token_urlsafe(32) for _ in range(3))
        self._under_way[state] = LoginUnderWay(binding, verifier, redirect, then, time.monotonic())
        while len(self._under_way) > UNDER_WAY_MAX:
            self._under_way.popitem(last=False)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": self.settings.scope,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{provider['authorization_endpoint']}?{urlencode(query)}", binding

    async def finish(self, state: str, code: str, binding: str | None) -> tuple[str, str]:
        """The access token, and where the browser wanted to go."""
        login = self._under_way.pop(state, None)
        fits = (
            login is not None
            and binding is not None
            and secrets.compare_digest(login.binding.encode(), binding.encode())
            and time.monotonic() - login.began < UNDER_WAY_S
        )
        if login is None or not fits:
            raise Declined(401, "wrong_login", "this login was not begun here, or too long ago", "log in again")
        provider = await self._discovered()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": login.redirect,
            "client_id": self.settings.client_id,
            "code_verifier": login.verifier,
        }
        if self.settings.client_secret is not None:
            form["client_secret"] = self.settings.client_secret
        told = await self._asked(str(provider["token_endpoint"]), urlencode(form).encode())
        token = told.get("access_token")
        if not isinstance(token, str) or not token:
            raise Declined(401, "wrong_login", "the identity provider gave no access token", "log in again")
        return token, login.then

    async def _discovered(self) -> dict[str, Any]:
        if self._provider is None:
            found = await self._asked(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration", None)
            for name in ("authorization_endpoint", "token_endpoint"):
                if not str(found.get(name, "")).startswith(("https://", "http://")):
                    raise Declined(503, "unreachable", f"the identity provider names no {name}")
            self._provider = found
        return self._provider

    async def _asked(self, url: str, body: bytes | None) -> dict[str, Any]:
        headers = {"accept": "application/json"} | ({"content-type": FORM} if body is not None else {})
        try:
            answer = await ask(address_of(url), asyncio.to_thread, body=body, headers=headers)
            told = msgspec.json.decode(answer)
        except (PenstockError, msgspec.DecodeError) as failure:
            raise Declined(503, "unreachable", f"the identity provider cannot be asked: {failure}") from None
        if not isinstance(told, dict):
            raise Declined(503, "unreachable", "the identity provider answered with something else than an object")
        return told
