"""The access tokens that one listener takes (OAUTHBEARER): by which keys they are judged, and how the keys get here.

Keys are fetched when the listener opens, every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and when a token names one
that is not known; `security/oauth/jwks.py` says when. Those of a fetch that failed stay. Signatures are checked, and
documents read, off the loop. Without keys nobody gets in.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.security.jaas.entry import BadJaas
from penstock.security.jaas.logins import OAuthLogin, parse_login
from penstock.security.oauth.claims import Expected
from penstock.security.oauth.jwks import KeySet, Missing, RefreshPolicy
from penstock.security.oauth.jws import NotAccepted, parse_key_set
from penstock.security.oauth.messages import MECHANISM, BadToken, Verdict
from penstock.security.oauth.validation import Signed, Unsecured, Validator
from penstock.server.loops.duty import duty
from penstock.server.securing import allowed_addresses, prefixed_name
from penstock.transport.web import Address, BadAddress, WebFailed, ask

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.config.definition import ConfigValue
    from penstock.model.ports import Clock, Offload
    from penstock.security.oauth.signatures import CryptographySignatures
    from penstock.security.oauth.validation import Judge
    from penstock.server.logs import Sparing

_log = logging.getLogger("penstock.server.bearers")

JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER: Final = "sasl.server.callback.handler.class"
WAITED_MS_MAX: Final = 5_000
"""How long one login waits for keys; its connection has ten seconds for all of it."""

_KAFKA: Final = "org.apache.kafka.common.security.oauthbearer."
_UNSECURED: Final = _KAFKA + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_SECURED: Final = (
    _KAFKA + "OAuthBearerValidatorCallbackHandler",
    _KAFKA + "secured.OAuthBearerValidatorCallbackHandler",
)


class BadLogins(PenstockError):
    """A listener that asks for logins and cannot have them. Names properties, never secrets."""


class Bearers:
    """Made before anything is bound; `BadLogins` when nobody could log in, or anybody."""

    def __init__(self, settings: BrokerSettings, listener_name: str) -> None:
        self._name = listener_name
        expected = _expected(settings, listener_name)
        self._address: Address | None = None
        self._judge: Judge
        if _unsecured(settings, listener_name):
            _log.warning(
                "listener %s BELIEVES TOKENS THAT NOBODY SIGNED (%s): anybody can log in as anybody",
                listener_name,
                HANDLER,
            )
            self._judge = Unsecured(expected)
            return
        self._address = _address(settings, listener_name)
        self.keys = KeySet(_refresh_policy(settings, listener_name))
        self._judge = Validator(self.keys, expected, _signatures())
        self._fetching: asyncio.Task[None] | None = None
        self._hastened = asyncio.Event()
        self._ended = asyncio.Event()  # one for each fetch: it is set when that has ended

    def open(self, clock: Clock, offload: Offload, sparing: Sparing) -> None:
        self._clock, self._offload, self._sparing = clock, offload, sparing
        if self._address is not None:
            self._fetching = duty(self._keep_fetching(self._address), name=f"signing keys of {self._name}")

    def close(self) -> None:
        if self._address is not None and self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None

    async def judged(self, token: str) -> Verdict:
        found = self._judge.find(token, self._clock.monotonic_ms())
        if isinstance(found, Missing):
            found = await self._fetched(token)
        if isinstance(found, Signed):
            return await self._offload.call(self._judge.check, found, self._clock.now_ms())
        return found

    async def _fetched(self, token: str) -> Signed | BadToken:
        """Waits for the fetch that may bring a key: the one that is under way, and one more that began after it."""
        try:
            async with asyncio.timeout(WAITED_MS_MAX / 1_000):
                for _ in range(2):
                    self._hastened.set()
                    await self._ended.wait()
                    found = self._judge.find(token, self._clock.monotonic_ms())
                    if not isinstance(found, Missing):
                        return found
        except TimeoutError:
            pass
        return BadToken("the token's key could not be fetched in time")

    # Keys.

    async def _keep_fetching(self, address: Address) -> None:
        while True:
            await self._until_due()
            self.keys.begin(self._clock.monotonic_ms())
            await self._fetch(address)
            self._ended.set()
            self._ended = asyncio.Event()

    async def _until_due(self) -> None:
        while (wait_ms := self.keys.due(now := self._clock.monotonic_ms()) - now) > 0:
            self._hastened.clear()
            try:
                async with asyncio.timeout(wait_ms / 1_000):
                    await self._hastened.wait()
            except TimeoutError:
                pass

    async def _fetch(self, address: Address) -> None:
        try:
            document = await ask(address, self._offload.call)
            keys = await self._offload.call(parse_key_set, document)
        except (WebFailed, NotAccepted) as failed:
            self.keys.failed(self._clock.monotonic_ms())
            self._sparing.warning(
                f"signing keys {self._name}", "listener %s goes on with the signing keys it has: %s", self._name, failed
            )
            return
        self.keys.fetched(keys, self._clock.monotonic_ms())
        _log.info("listener %s has the signing keys of %s", self._name, address)


def _expected(settings: BrokerSettings, listener_name: str) -> Expected:
    def of(name: str) -> ConfigValue:
        return settings.for_listener(listener_name, f"sasl.oauthbearer.{name}")

    issuer, audience, skew = of("expected.issuer"), of("expected.audience"), of("clock.skew.seconds")
    assert isinstance(audience, tuple), "a list"
    assert isinstance(skew, int), "a number"
    for name, value in (("expected.issuer", issuer), ("expected.audience", audience)):
        if not value:
            _log.warning("listener %s takes tokens of any: sasl.oauthbearer.%s is not given", listener_name, name)
    return Expected(
        str(issuer) if issuer else None, audience, skew, str(of("scope.claim.name")), str(of("sub.claim.name"))
    )


def _refresh_policy(settings: BrokerSettings, listener_name: str) -> RefreshPolicy:
    names = ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")
    values = [settings.for_listener(listener_name, f"sasl.oauthbearer.jwks.endpoint.{name}") for name in names]
    numbers = [value for value in values if isinstance(value, int) and value > 0]
    if len(numbers) != len(names):
        raise BadLogins(f"sasl.oauthbearer.jwks.endpoint.{', '.join(names)} are above 0")
    return RefreshPolicy(*numbers)


def _address(settings: BrokerSettings, listener_name: str) -> Address:
    url = settings.for_listener(listener_name, JWKS_URL)
    if not isinstance(url, str) or not url:
        raise BadLogins(f"{MECHANISM} is enabled, but {JWKS_URL} is not given: no token could be checked")
    try:
        return allowed_addresses(settings).check(url)
    except BadAddress as bad:
        raise BadLogins(f"{JWKS_URL}: {bad}") from None


def _unsecured(settings: BrokerSettings, listener_name: str) -> bool:
    """Whether the class that Kafka would load believes everybody. Only by name, and never by default."""
    own = settings.get(prefixed_name(listener_name, f"{MECHANISM.lower()}.{HANDLER}"))
    handler = settings.for_listener(listener_name, HANDLER) if own is None else own
    if not handler or handler in _SECURED:
        return False
    if handler != _UNSECURED:
        raise BadLogins(f"{HANDLER} names a class that is not known here: {str(handler)[:200]!r}")
    _check_options(settings, listener_name)
    return True


def _check_options(settings: BrokerSettings, listener_name: str) -> None:
    """Options that would make the unsecured validator choosier must not be passed over."""
    text = settings.get(prefixed_name(listener_name, f"{MECHANISM.lower()}.sasl.jaas.config"))
    if not isinstance(text, Secret):
        return
    try:
        login = parse_login(text.reveal(), MECHANISM)
    except BadJaas:
        return  # told by whoever reads all of them
    assert isinstance(login, OAuthLogin), "the module of this mechanism"
    for option in sorted(login.options):
        if option.startswith("unsecuredValidator"):
            raise BadLogins(f"the option {option} of OAuthBearerLoginModule is not known here")


def _signatures() -> CryptographySignatures:
    from penstock.security.oauth.signatures import CryptographySignatures

    return CryptographySignatures()
