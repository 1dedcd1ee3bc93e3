"""Logging in by access tokens (OAUTHBEARER): where they come from, and when the next one is asked for.

A token is kept until it is time for another, and asked for when somebody logs in, so that many links share one. A
link logs in again before its session ends, which is when its token does. While the provider cannot be reached, the
token that is still good is used.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlencode

from penstock.model.secret import Secret
from penstock.security.exchange import ClientExchange
from penstock.security.jaas.logins import OAuthLogin, parse_login
from penstock.security.oauth.messages import MECHANISM, OAuthClient, check_extensions
from penstock.security.oauth.renewal import AccessToken, NoToken, RenewalPolicy, access_token
from penstock.transport.login import BadLogin
from penstock.transport.web import Address, BadAddress, Run, WebFailed, address_of, ask

_log = logging.getLogger("penstock.transport.bearer")

TRIES_MAX: Final = 6
URL: Final = "sasl.oauthbearer.token.endpoint.url"

Provide = Callable[[], str | Awaitable[str]]
"""Gives an access token. A function that does not give an awaitable is called in a thread."""


class TokenSource(Protocol):
    """Where tokens come from. `NoToken` when there is none to be had."""

    async def obtain(self, run: Run) -> AccessToken: ...


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Asks an identity provider, as a client with an id and a secret (RFC 6749, 4.4)."""

    address: Address
    client_id: str
    client_secret: Secret
    scope: str | None = None

    async def obtain(self, run: Run) -> AccessToken:
        fields = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        answer = _json(await _answer(self.address, run, urlencode(fields).encode("ascii"), self._headers()))
        text, lifetime_s = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(text, str):
            raise NoToken(f"{self.address} answered without an access_token")
        known = isinstance(lifetime_s, int | float) and not isinstance(lifetime_s, bool)
        return access_token(text, time.time() * 1_000, float(str(lifetime_s)) if known else None)

    def _headers(self) -> dict[str, str]:
        pair = base64.b64encode(f"{self.client_id}:{self.client_secret.reveal()}".encode())
        return {
            "Authorization": f"Basic {pair.decode('ascii')}",
            "Content-Type": "application/x-www-form-urlencoded",
        }


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that somebody else keeps fresh; it is read again when its token is about to end."""

    address: Address

    async def obtain(self, run: Run) -> AccessToken:
        text = (await _answer(self.address, run)).decode("ascii", "replace")
        return access_token(text, time.time() * 1_000)


@dataclass(frozen=True, slots=True)
class TokenProvider:
    """A function of the program's own."""

    provide: Provide

    async def obtain(self, run: Run) -> AccessToken:
        try:
            given = self.provide() if inspect.iscoroutinefunction(self.provide) else await run(self.provide)
            text = await given if inspect.isawaitable(given) else given
        except Exception as broken:
            _log.warning("token_provider failed", exc_info=broken)
            raise NoToken(f"token_provider failed with {type(broken).__name__}", again=True) from None
        if not isinstance(text, str):
            raise NoToken("token_provider gave no text")
        return access_token(text, time.time() * 1_000)


class BearerCredentials:
    """For all links of one loop."""

    mechanism: Final = MECHANISM

    def __init__(
        self,
        source: TokenSource,
        extensions: Mapping[str, str] | None = None,
        policy: RenewalPolicy | None = None,
    ) -> None:
        """`Malformed` when extensions cannot be sent."""
        self.source, self.extensions = source, dict(extensions or {})
        check_extensions(self.extensions)
        self._policy = policy or RenewalPolicy()
        self._token: AccessToken | None = None
        self._renew_at_ms = self._aged_at_ms = 0.0
        self._asking = asyncio.Lock()

    async def begin(self, run: Run, *, again: bool = False) -> ClientExchange:
        """One login. `NoToken` when there is none to log in with."""
        async with self._asking:
            now_ms = time.time() * 1_000
            # A session that is about to end by the broker's clock needs a token that ends later, whatever ours says;
            # but of many links that log in again only the first has to ask for it.
            if self._token is None or now_ms >= (self._aged_at_ms if again else self._renew_at_ms):
                await self._renew(run)
            assert self._token is not None, "a token was obtained"
            return OAuthClient(self._token.token, extensions=self.extensions)

    async def _renew(self, run: Run) -> None:
        failures = 0
        while True:
            try:
                self._keep(await self.source.obtain(run))
                return
            except NoToken as failure:
                failures += 1
                if self._still_good():
                    _log.warning("the next access token is not to be had; the old one is still good: %s", failure)
                    return
                if not failure.again or failures == TRIES_MAX:
                    raise
            await asyncio.sleep(self._policy.wait_ms(failures - 1) / 1_000)

    def _keep(self, token: AccessToken) -> None:
        now_ms = time.time() * 1_000
        self._token, self._renew_at_ms = token, now_ms
        if token.ends_ms is not None:
            self._renew_at_ms = self._policy.renew_at_ms(token.begins_ms, token.ends_ms, now_ms, random.random())
        self._aged_at_ms = min(self._renew_at_ms, now_ms + ((token.ends_ms or now_ms) - now_ms) / 2)

    def _still_good(self) -> bool:
        ends_ms = None if self._token is None else self._token.ends_ms
        return ends_ms is not None and time.time() * 1_000 < ends_ms


@dataclass(frozen=True, slots=True)
class BearerProperties:
    """`sasl.oauthbearer.token.endpoint.url`, `.client.credentials.client.id`, `.secret`, `.scope`, `sasl.jaas.config`.

    What the JAAS text says (`clientId`, `clientSecret`, `scope`) counts where the properties say nothing.
    """

    url: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    scope: str | None = None
    jaas: str | None = None


def bearer_credentials(
    given: BearerProperties,
    *,
    provide: Provide | None = None,
    policy: RenewalPolicy | None = None,
    check: Callable[[str], Address] = address_of,
) -> BearerCredentials:
    """`check` says whether an address may be asked. `BadLogin`, `BadJaas` and others when they name no login."""
    login = OAuthLogin(None, None, None)
    if given.jaas is not None:
        parsed = parse_login(given.jaas, MECHANISM)
        assert isinstance(parsed, OAuthLogin), "the module of this mechanism"
        login = parsed
    return BearerCredentials(_source(given, login, provide, check), login.extensions, policy)


def _source(
    given: BearerProperties, login: OAuthLogin, provide: Provide | None, check: Callable[[str], Address]
) -> TokenSource:
    if provide is not None:
        return TokenProvider(provide)
    if not given.url:
        raise BadLogin(f"{MECHANISM} needs {URL}: where access tokens come from")
    try:
        address = check(given.url)
    except BadAddress as bad:
        raise BadLogin(f"{URL}: {bad}") from None
    if address.scheme == "file":
        return TokenFile(address)
    client_id, secret = given.client_id or login.client_id, given.client_secret or login.client_secret
    if not client_id or not secret:
        raise BadLogin(f"{URL} needs sasl.oauthbearer.client.credentials.client.id and .secret")
    return TokenEndpoint(address, client_id, secret, given.scope or login.scope)


async def _answer(
    address: Address, run: Run, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    try:
        return await ask(address, run, body=body, headers=headers)
    except WebFailed as failed:
        raise NoToken(str(failed), again=failed.again) from None


def _json(answer: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise NoToken("the token endpoint's answer is no JSON object")
    return found
