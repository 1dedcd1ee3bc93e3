"""CreateDelegationToken (38), versions 1-3. A token that lets whoever holds it act as its owner for a while.

Behaviour: only for who proved a name, and not by a token (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED); for another owner it
takes CREATE_TOKENS on that user. The controller decides, and answers when committed; DELEGATION_TOKEN_AUTH_DISABLED
without `delegation.token.secret.key`.
Notes: v3 tokens for another owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode,
    Refused,
)
from penstock.model.security import Principal
from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.controller_requests import submitted
from penstock.server.handlers.shared.token_requests import takes_tokens

if TYPE_CHECKING:
    from penstock.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
    from penstock.server.doors import Context


_REQUESTERS_SINCE: Final = 3


async def handle(ctx: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    owner = ctx.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    if not takes_tokens(ctx):
        return _refused(ctx, owner, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if owner != ctx.principal and not ctx.allow(Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return _refused(ctx, owner, DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    try:
        reply = await submitted(ctx, request, CreateDelegationTokenResponse)
    except Refused as refusal:
        return _refused(ctx, owner, refusal.error)
    requester = _requester(ctx)
    reply.token_requester_principal_type, reply.token_requester_principal_name = requester.kind, requester.name
    return reply


def _requester(ctx: Context) -> Principal:
    """Who asks, as far as the version has a place for it."""
    return ctx.principal if ctx.api_version >= _REQUESTERS_SINCE else Principal("", "")


def _refused(ctx: Context, owner: Principal, error: ErrorCode) -> CreateDelegationTokenResponse:
    requester = _requester(ctx)
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
