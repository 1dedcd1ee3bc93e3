"""The logins of one listener: which mechanisms it offers, who may come by them, and what became of those who tried.

Imported only by listeners with SASL. GSSAPI is not offered.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.security.delegation import ends_at_ms, token_settings
from penstock.security.failures import FailureDelays
from penstock.security.jaas.entry import BadJaas
from penstock.security.jaas.logins import PlainLogin, parse_login
from penstock.security.oauth.messages import MECHANISM as OAUTHBEARER
from penstock.security.oauth.messages import OAuthServer
from penstock.security.plain import MECHANISM as PLAIN
from penstock.security.plain import PlainServer, PlainUsers
from penstock.security.sasl_server import Limits, Mechanisms
from penstock.security.scram.keys import BY_NAME, RANDOM_BYTES, Credential, Mechanism, Strangers, nonce_of
from penstock.security.scram.server import ScramServer
from penstock.server.reception.bearers import BadLogins as BadLogins
from penstock.server.reception.bearers import Bearers
from penstock.server.reception.token_logins import TokenLogins
from penstock.server.securing import prefixed_name

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.config import BrokerSettings
    from penstock.protocol.disk.metadata_security import DelegationTokenRecord, UserScramCredentialRecord
    from penstock.security.exchange import ServerExchange
    from penstock.security.scram.server import TokenLogin

_log = logging.getLogger("penstock.server.logins")

OFFERED: Final = (PLAIN, *BY_NAME, OAUTHBEARER)
ENABLED: Final = "sasl.enabled.mechanisms"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
JAAS: Final = "sasl.jaas.config"
MAX_REAUTH: Final = "connections.max.reauth.ms"
FAILURE_DELAY: Final = "connection.failed.authentication.delay.ms"
_SECRET_BYTES: Final = 32


class ScramRecords:
    """The credentials and delegation tokens of the published image, for one login.

    It is checked against `record` or `token`, or against neither, for a stranger.
    """

    __slots__ = ("_image", "_mechanism", "_tokens", "record", "token")

    def __init__(self, image: Callable[[], ClusterImage], tokens: TokenLogins) -> None:
        self._image, self._tokens = image, tokens
        self._mechanism: Mechanism | None = None  # that of `token`
        self.record: UserScramCredentialRecord | None = None
        self.token: DelegationTokenRecord | None = None

    def of_user(self, mechanism: Mechanism, name: str) -> Credential | None:
        self.token = None
        self.record = record = self._image().scram.get((mechanism.type, name))
        if record is None:
            return None
        return Credential(record.salt, record.stored_key, record.server_key, record.iterations)

    def of_token(self, mechanism: Mechanism, token_id: str) -> TokenLogin | None:
        self.record = None
        self._mechanism, self.token = mechanism, self._image().tokens.get(token_id)
        return None if self.token is None else self._tokens.login(mechanism, self.token)

    def keep(self, salted: bytes) -> None:
        """What was derived. When that was a token's key, its next login needs no thread."""
        if self.token is not None and self._mechanism is not None:
            self._tokens.keep(self._mechanism, self.token.token_id, salted)

    @property
    def current(self) -> bool:
        """Whether the credential is still what it was when it was looked up; true where none was.

        A token may end later by now: that is for the next login.
        """
        if self.token is not None:
            now = self._image().tokens.get(self.token.token_id)
            return now is not None and ends_at_ms(now) >= ends_at_ms(self.token)
        record = self.record
        return record is None or self._image().scram.get((record.mechanism, record.name)) == record


class Logins:
    """Made before anything is bound; `BadLogins` or `BadJaas` when the settings make no sense."""

    def __init__(self, settings: BrokerSettings, listener_name: str) -> None:
        self._name = listener_name
        self.limits = Limits(
            frame_bytes_max=settings.number("sasl.server.max.receive.size"),
            failure_delay_ms=settings.number(FAILURE_DELAY),
        )
        self.delays = FailureDelays(first_ms=self.limits.failure_delay_ms)
        self._enabled = enabled_mechanisms(settings, listener_name)
        self._strangers = Strangers(_strangers_secret(settings))
        self.tokens = TokenLogins(token_settings(settings).secret)
        self._passwords = plain_users(settings, listener_name, self._enabled)
        self._users = PlainUsers(self._passwords)
        self.bearers = Bearers(settings, listener_name) if OAUTHBEARER in self._enabled else None
        self._max_reauth_ms = {each: _max_reauth_ms(settings, listener_name, each) for each in self._enabled}
        self.succeeded: dict[str, int] = dict.fromkeys(self._enabled, 0)
        self.failed: dict[str, int] = dict.fromkeys((*self._enabled, "none"), 0)
        self.renewed = 0
        self.not_renewed = 0
        self.expired = 0

    def mechanisms(self, records: ScramRecords) -> Mechanisms:
        """What a connection is offered."""
        begin: dict[str, Callable[[], ServerExchange]] = {}
        for name in self._enabled:
            if name in BY_NAME:
                begin[name] = partial(self._scram, BY_NAME[name], records)
            else:
                begin[name] = self._plain if name == PLAIN else OAuthServer
        return Mechanisms(begin, self._max_reauth_ms)

    def _plain(self) -> ServerExchange:
        return PlainServer(self._users)

    def _scram(self, mechanism: Mechanism, records: ScramRecords) -> ServerExchange:
        return ScramServer(mechanism, records, self._strangers, nonce_of(secrets.token_bytes(RANDOM_BYTES)))

    def settings_changed(self, settings: BrokerSettings) -> set[str]:
        """Takes over the users of PLAIN; those who are gone or have another password now."""
        try:
            users = plain_users(settings, self._name, self._enabled)
        except PenstockError as bad:
            _log.error("listener %s goes on with the users it has: %s", self._name, bad)
            return set()
        old, self._passwords = self._passwords, users
        self._users = PlainUsers(users)
        return {name for name, password in old.items() if users.get(name) != password}


def enabled_mechanisms(settings: BrokerSettings, listener_name: str) -> tuple[str, ...]:
    """`sasl.enabled.mechanisms` of a listener. `BadLogins` when one is not offered here, or nodes could not log in."""
    names = settings.for_listener(listener_name, ENABLED)
    assert isinstance(names, tuple), f"{ENABLED} is a list"
    strange = [name for name in names if name not in OFFERED]
    if strange or not names:
        told = f"{ENABLED} has {strange[0]}" if strange else f"{ENABLED} is empty"
        raise BadLogins(f"{told}; {', '.join(OFFERED)} are offered here")
    mechanism = settings.text(CONTROLLER_MECHANISM)
    if listener_name in settings.controller_listener_names and mechanism not in names:
        raise BadLogins(f"{CONTROLLER_MECHANISM} is {mechanism}, which is not in {ENABLED}: nodes could not log in")
    return names


def plain_users(settings: BrokerSettings, listener_name: str, enabled: tuple[str, ...]) -> Mapping[str, Secret]:
    """Those of the JAAS text of PLAIN; the texts of other mechanisms are read too, so that mistakes are found."""
    users: Mapping[str, Secret] = {}
    for mechanism in enabled:
        name = prefixed_name(listener_name, f"{mechanism.lower()}.{JAAS}")
        text = settings.get(name)
        if text is None:
            if mechanism == PLAIN:
                raise BadLogins(f"{name} is not given: nobody could log in by {PLAIN}")
            continue
        assert isinstance(text, Secret), f"{name} is a password"
        try:
            login = parse_login(text.reveal(), mechanism)
        except BadJaas as bad:
            raise BadLogins(f"{name}: {bad}") from None
        if isinstance(login, PlainLogin):
            users = login.users
    return users


def _max_reauth_ms(settings: BrokerSettings, listener_name: str, mechanism: str) -> int:
    own = settings.get(prefixed_name(listener_name, f"{mechanism.lower()}.{MAX_REAUTH}"))
    value = settings.for_listener(listener_name, MAX_REAUTH) if own is None else own
    assert isinstance(value, int), f"{MAX_REAUTH} is a number"
    return value


def _strangers_secret(settings: BrokerSettings) -> bytes:
    """The one secret that a cluster may have in common; else nodes show strangers different salts."""
    shared = settings["delegation.token.secret.key"]
    if isinstance(shared, Secret) and shared.reveal():
        return shared.reveal().encode("utf-8", "surrogatepass")
    return secrets.token_bytes(_SECRET_BYTES)
