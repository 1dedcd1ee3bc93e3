"""RenewDelegationToken (39), versions 1-2. A delegation token gets more time, never beyond its longest life.

Behaviour: only for who proved a name, and not by a token (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED). Whoever holds the
token asks with its HMAC, and has to be its owner or one of its renewers (DELEGATION_TOKEN_OWNER_MISMATCH), which no ACL
changes. The controller decides, and answers when committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, Refused
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from penstock.server.handlers.shared.controller_requests import submitted
from penstock.server.handlers.shared.token_requests import takes_tokens

if TYPE_CHECKING:
    from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    if not takes_tokens(ctx):
        return RenewDelegationTokenResponse(
            error_code=DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code, expiry_timestamp_ms=-1
        )
    try:
        return await submitted(ctx, request, RenewDelegationTokenResponse)
    except Refused as refusal:
        return RenewDelegationTokenResponse(error_code=refusal.error.code)
