"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and the sweep of tokens that are over.

Whether the asker's connection may speak of tokens, and for others, has been asked before (`delegation.may_ask`, ACLs).
Times are of the day, in milliseconds: tokens outlive controllers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.controller.decision import Decision, World
from penstock.metadata import features
from penstock.model.errors import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_OWNER_MISMATCH,
    INVALID_PRINCIPAL_TYPE,
    INVALID_REQUEST,
    POLICY_VIOLATION,
    UNSUPPORTED_VERSION,
    Refused,
)
from penstock.model.ids import uuid_text
from penstock.model.security import Principal
from penstock.protocol.disk.metadata_security import DelegationTokenRecord, RemoveDelegationTokenRecord
from penstock.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from penstock.security.delegation import TokenIndex, TokenSettings, has_expired, may_renew, token_hmac

SWEPT_MAX: Final = 1_000
"""How many tokens one sweep removes; with more of them it is asked for again at once."""

TOKENS_MAX: Final = 10_000
"""Tokens that one principal may have made at a time. Whoever may log in may ask for them, and every node keeps all."""
NAMES_CHARACTERS_MAX: Final = 16_384
"""Of the owner and all renewers of a token together."""

_USER: Final = "User"
_LAST_MS: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TokenAsker:
    """Who asks, when, and what the node's settings say. `index` finds tokens; None when tokens are off."""

    principal: Principal
    now_ms: int
    settings: TokenSettings
    index: TokenIndex | None


def decide_create(world: World, request: CreateDelegationTokenRequest, asker: TokenAsker) -> Decision:
    """CreateDelegationToken: for the asker, or for an owner that the request names."""
    owner = asker.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    reply = CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=asker.principal.kind,
        token_requester_principal_name=asker.principal.name,
    )
    settings, now_ms = asker.settings, asker.now_ms
    try:
        secret = _check_enabled(world, settings)
        if any(renewer.principal_type != _USER for renewer in request.renewers):
            raise Refused(INVALID_PRINCIPAL_TYPE)
        _check_room(world, request, owner, asker.principal)
    except Refused as refused:
        reply.error_code = refused.error.code
        return Decision([], reply)
    lifetime_ms = settings.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    token = DelegationTokenRecord(
        owner=str(owner),
        requester=str(asker.principal),
        renewers=[str(Principal(each.principal_type, each.principal_name)) for each in request.renewers],
        issue_timestamp=now_ms,
        max_timestamp=_later(now_ms, lifetime_ms),
        expiration_timestamp=_later(now_ms, min(lifetime_ms, settings.expiry_ms)),
        token_id=uuid_text(world.new_uuid()),
    )
    reply.issue_timestamp_ms = token.issue_timestamp
    reply.expiry_timestamp_ms = token.expiration_timestamp
    reply.max_timestamp_ms = token.max_timestamp
    reply.token_id = token.token_id
    reply.hmac = token_hmac(secret, token.token_id)
    return Decision([world.versioned(token)], reply, "create delegation token")


def decide_renew(world: World, request: RenewDelegationTokenRequest, asker: TokenAsker) -> Decision:
    """RenewDelegationToken: for its owner and renewers, never beyond its longest life."""
    try:
        _check_enabled(world, asker.settings)
        token = _found(world, request.hmac, asker)
        _check_alive(token, asker.now_ms)
        _check_renewer(token, asker)
    except Refused as refused:
        return Decision([], RenewDelegationTokenResponse(error_code=refused.error.code))
    period_ms = asker.settings.expiry_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = _ending(token, asker.now_ms + period_ms)
    reply = RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expiration_timestamp)
    return Decision([world.versioned(renewed)], reply, "renew delegation token")


def decide_expire(world: World, request: ExpireDelegationTokenRequest, asker: TokenAsker) -> Decision:
    """ExpireDelegationToken: it ends after the period; at once, also when it is over already, for a negative one."""
    period_ms = request.expiry_time_period_ms
    try:
        _check_enabled(world, asker.settings)
        token = _found(world, request.hmac, asker)
        _check_renewer(token, asker)
        if period_ms >= 0:
            _check_alive(token, asker.now_ms)
    except Refused as refused:
        return Decision([], ExpireDelegationTokenResponse(error_code=refused.error.code))
    if period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.token_id)
        reply = ExpireDelegationTokenResponse(expiry_timestamp_ms=asker.now_ms)
        return Decision([world.versioned(removal)], reply, "expire delegation token")
    ending = _ending(token, asker.now_ms + period_ms)
    reply = ExpireDelegationTokenResponse(expiry_timestamp_ms=ending.expiration_timestamp)
    return Decision([world.versioned(ending)], reply, "expire delegation token")


def decide_sweep(world: World, now_ms: int) -> Decision:
    """Removes tokens that are over. Call again at once while it has `SWEPT_MAX` records."""
    over = [token.token_id for token in world.image.tokens.values() if has_expired(token, now_ms)]
    records = [world.versioned(RemoveDelegationTokenRecord(token_id=token_id)) for token_id in over[:SWEPT_MAX]]
    return Decision(records, name="sweep delegation tokens")


def _check_room(world: World, request: CreateDelegationTokenRequest, owner: Principal, requester: Principal) -> None:
    """Kafka has no bound here, so a user without a single right could fill the memory of all nodes."""
    names = len(owner.name) + sum(len(renewer.principal_name) for renewer in request.renewers)
    if names + len(request.renewers) > NAMES_CHARACTERS_MAX:
        raise Refused(INVALID_REQUEST)
    asking = str(requester)
    made = sum((token.requester or token.owner) == asking for token in world.image.tokens.values())
    if made >= TOKENS_MAX:
        raise Refused(POLICY_VIOLATION)


def _later(now_ms: int, period_ms: int) -> int:
    """A time that a record can hold, however far away it was asked to be."""
    return min(now_ms + period_ms, _LAST_MS)


def _check_enabled(world: World, settings: TokenSettings) -> bytes:
    if settings.secret is None:
        raise Refused(DELEGATION_TOKEN_AUTH_DISABLED)
    if world.image.metadata_version < features.METADATA_3_6_TOKENS:
        raise Refused(UNSUPPORTED_VERSION)
    return settings.secret


def _found(world: World, hmac: bytes, asker: TokenAsker) -> DelegationTokenRecord:
    token = None if asker.index is None else asker.index.find(world.image.tokens, hmac)
    if token is None:
        raise Refused(DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_alive(token: DelegationTokenRecord, now_ms: int) -> None:
    if has_expired(token, now_ms):
        raise Refused(DELEGATION_TOKEN_EXPIRED)


def _check_renewer(token: DelegationTokenRecord, asker: TokenAsker) -> None:
    if not may_renew(token, asker.principal):
        raise Refused(DELEGATION_TOKEN_OWNER_MISMATCH)


def _ending(token: DelegationTokenRecord, at_ms: int) -> DelegationTokenRecord:
    """The token with another end, within its longest life. Images share records, so it is another record."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=min(token.max_timestamp, at_ms),
        token_id=token.token_id,
    )
