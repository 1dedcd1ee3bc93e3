"""Delegation tokens: who may have one, whose it is, how it is found by what its bearer knows.

A token's password is an HMAC over its id with the secret that all nodes share; no record holds it. So whoever renews a
token by its HMAC is found by computing what every token's would be, once for each token.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.model.security import ANONYMOUS, Principal

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.protocol.disk.metadata_security import DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """`delegation.token.secret.key`, without which there are no tokens, and how long they live."""

    secret: bytes | None = field(repr=False)
    max_lifetime_ms: int = 604_800_000
    expiry_ms: int = 86_400_000


def token_settings(settings: BrokerSettings) -> TokenSettings:
    """What a node's file says of tokens."""
    secret = settings["delegation.token.secret.key"]
    return TokenSettings(
        secret.reveal().encode("utf-8", "surrogatepass") if isinstance(secret, Secret) and secret else None,
        settings.number("delegation.token.max.lifetime.ms"),
        settings.number("delegation.token.expiry.time.ms"),
    )


def token_hmac(secret: bytes, token_id: str) -> bytes:
    """What proves that somebody holds the token; its base64 is the password of a SCRAM login."""
    return hmac.digest(secret, token_id.encode("utf-8"), "sha512")


class TokenIndex:
    """Finds tokens by their HMACs. Follows the image's tokens at every question, so it needs no telling."""

    __slots__ = ("_id_of", "_known", "_secret")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        # By a hash of the HMAC: how long a look-up takes says nothing about the HMACs that are in the table.
        self._id_of: dict[bytes, str] = {}
        self._known: dict[str, bytes] = {}

    def find(self, tokens: Mapping[str, DelegationTokenRecord], given: bytes) -> DelegationTokenRecord | None:
        """The token that `given` is the HMAC of; None when there is none."""
        self._follow(tokens)
        token_id = self._id_of.get(_hashed(given))
        if token_id is None or not hmac.compare_digest(token_hmac(self._secret, token_id), given):
            return None
        return tokens[token_id]

    def _follow(self, tokens: Mapping[str, DelegationTokenRecord]) -> None:
        if self._known.keys() == tokens.keys():
            return
        for token_id in self._known.keys() - tokens.keys():
            del self._id_of[self._known.pop(token_id)]
        for token_id in tokens.keys() - self._known.keys():
            hashed = self._known[token_id] = _hashed(token_hmac(self._secret, token_id))
            self._id_of[hashed] = token_id

    def __repr__(self) -> str:
        return f"TokenIndex({len(self._known)} tokens)"


def _hashed(given: bytes) -> bytes:
    return hashlib.sha256(given).digest()


def may_ask(security_protocol: str, principal: Principal, *, by_token: bool) -> bool:
    """Whether requests about tokens are taken from a connection: its user must be known, and not by a token."""
    if by_token or security_protocol == "PLAINTEXT":
        return False
    return security_protocol != "SSL" or principal != ANONYMOUS


def may_renew(token: DelegationTokenRecord, principal: Principal) -> bool:
    """Whether somebody may renew a token or let it end."""
    return str(principal) in (token.owner, *token.renewers)


def is_visible(token: DelegationTokenRecord, asker: Principal, owners: Set[str] | None, *, may_describe: bool) -> bool:
    """Whether DescribeDelegationToken tells `asker` of a token.

    `owners` are the principals whose tokens are asked for, as text, None for everybody's; `may_describe` is what ACLs
    say of tokens that are not the asker's own. Owners are looked up: a request may name as many as there are tokens.
    """
    concerned = (token.owner, token.requester, *token.renewers)
    if owners is not None and owners.isdisjoint(concerned):
        return False
    return may_describe or str(asker) in concerned


def has_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether a token is over, by the time of day."""
    return ends_at_ms(token) < now_ms


def ends_at_ms(token: DelegationTokenRecord) -> Millis:
    """When a token is over: its last renewal never outlasts its longest life."""
    return Millis(min(token.max_timestamp, token.expiration_timestamp))
