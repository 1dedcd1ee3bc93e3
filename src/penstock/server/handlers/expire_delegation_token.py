"""ExpireDelegationToken (40), versions 1-2. A delegation token ends after a period, at once for a negative one.

Behaviour: only for who proved a name, and not by a token (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED). Whoever holds the
token asks with its HMAC, and has to be its owner or one of its renewers (DELEGATION_TOKEN_OWNER_MISMATCH), which no ACL
changes. The controller decides, and answers when committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, Refused
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from penstock.server.handlers.shared.controller_requests import submitted
from penstock.server.handlers.shared.token_requests import takes_tokens

if TYPE_CHECKING:
    from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
    from penstock.server.doors import Context


async def handle(ctx: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    if not takes_tokens(ctx):
        return ExpireDelegationTokenResponse(
            error_code=DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code, expiry_timestamp_ms=-1
        )
    try:
        return await submitted(ctx, request, ExpireDelegationTokenResponse)
    except Refused as refusal:
        return ExpireDelegationTokenResponse(error_code=refusal.error.code)
