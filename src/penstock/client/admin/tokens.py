"""Delegation tokens: logins that somebody lends to programs, for a time."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from penstock.client.admin.session import Session, check
from penstock.model.errors import DELEGATION_TOKEN_AUTH_DISABLED
from penstock.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from penstock.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_CLUSTERS: Final = -1  # for a period: as the cluster's settings say; for an end: now


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token, with times of the day in milliseconds. Principals are written as `User:alice`.

    Whoever has `hmac` can log in as `owner` until `expires_ms`, which renewals move up to `max_ms`.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    @property
    def password(self) -> str:
        """The HMAC as text, which is the password of the login whose name is `token_id`."""
        return base64.b64encode(self.hmac).decode("ascii")

    @property
    def jaas_config(self) -> str:
        """`sasl_jaas_config` of a client that logs in with the token, by either mechanism of SCRAM."""
        return f'{SCRAM_MODULE} required username="{self.token_id}" password="{self.password}" tokenauth="true";'


async def create_token(
    session: Session, owner: str | None, renewers: Iterable[str], max_lifetime_ms: int | None
) -> DelegationToken:
    kind, name = (None, None) if owner is None else _parts(owner)
    able = [_parts(each) for each in renewers]
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[
            CreateDelegationTokenRequest.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in able
        ],
        max_lifetime_ms=_CLUSTERS if max_lifetime_ms is None else max_lifetime_ms,
    )

    async def ask() -> CreateDelegationTokenResponse:
        reply: CreateDelegationTokenResponse = await session.any(request)
        _check(reply.error_code, "making a delegation token")
        return reply

    made = await session.patient(ask)
    return DelegationToken(
        made.token_id,
        made.hmac,
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        tuple(f"{kind}:{name}" for kind, name in able),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


async def renew_token(session: Session, hmac: bytes | str, period_ms: int | None) -> int:
    request = RenewDelegationTokenRequest(
        hmac=_hmac(hmac), renew_period_ms=_CLUSTERS if period_ms is None else period_ms
    )

    async def ask() -> int:
        reply: RenewDelegationTokenResponse = await session.any(request)
        _check(reply.error_code, "renewing the delegation token")
        return reply.expiry_timestamp_ms

    return await session.patient(ask)


async def expire_token(session: Session, hmac: bytes | str, after_ms: int | None) -> int:
    request = ExpireDelegationTokenRequest(
        hmac=_hmac(hmac), expiry_time_period_ms=_CLUSTERS if after_ms is None else after_ms
    )

    async def ask() -> int:
        reply: ExpireDelegationTokenResponse = await session.any(request)
        _check(reply.error_code, "ending the delegation token")
        return reply.expiry_timestamp_ms

    return await session.patient(ask)


async def describe_tokens(session: Session, owners: Iterable[str] | None) -> list[DelegationToken]:
    made = DescribeDelegationTokenRequest
    wanted = None if owners is None else [_parts(each) for each in owners]
    request = made(
        owners=None
        if wanted is None
        else [made.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in wanted]
    )

    async def ask() -> DescribeDelegationTokenResponse:
        reply: DescribeDelegationTokenResponse = await session.any(request)
        _check(reply.error_code, "listing delegation tokens")
        return reply

    return sorted(map(_told, (await session.patient(ask)).tokens), key=lambda token: (token.issued_ms, token.token_id))


def _check(code: int, where: str) -> None:
    """`check`, in words for what brokers tell by its code alone: that their files lack the secret of tokens."""
    lacking = code == DELEGATION_TOKEN_AUTH_DISABLED.code
    check(code, f"{where} was refused: the nodes have no delegation.token.secret.key" if lacking else None, where)


def _told(token: DescribeDelegationTokenResponse.DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        token.token_id,
        token.hmac,
        f"{token.principal_type}:{token.principal_name}",
        f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
        tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        token.issue_timestamp,
        token.expiry_timestamp,
        token.max_timestamp,
    )


def _parts(principal: str) -> tuple[str, str]:
    kind, colon, name = principal.partition(":")
    if not colon or not kind or not name:
        raise ValueError(f"{principal!r} is no principal: it is written as User:name")
    return kind, name


def _hmac(given: bytes | str) -> bytes:
    """The bytes of an HMAC. Its text is a password, so no error shows it."""
    if isinstance(given, bytes):
        return given
    try:
        return base64.b64decode(given, validate=True)
    except ValueError:
        raise ValueError("the HMAC of a delegation token is base64") from None
