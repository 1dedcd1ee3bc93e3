"""DescribeDelegationToken (41), versions 1-3. The delegation tokens that a client may know of, with their HMACs.

Behaviour: one's own, those that one may renew, and those that ACLs show: DESCRIBE on the token or DESCRIBE_TOKENS on
its owner. No list of owners means everybody's, an empty one nobody's. Answered from this node's own image.
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and DELEGATION_TOKEN_AUTH_DISABLED as for CreateDelegationToken.
Notes: v3 who asked for a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
from penstock.model.security import Principal
from penstock.protocol.messages.describe_delegation_token import DescribeDelegationTokenResponse
from penstock.security.acls import parse_principal
from penstock.security.delegation import is_visible, token_hmac, token_settings
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.token_requests import takes_tokens

if TYPE_CHECKING:
    from penstock.protocol.disk.metadata_security import DelegationTokenRecord
    from penstock.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
    from penstock.server.doors import Context

Token = DescribeDelegationTokenResponse.DescribedDelegationToken
_REQUESTERS_SINCE: Final = 3

Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer


def handle(ctx: Context, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    if not takes_tokens(ctx):
        return DescribeDelegationTokenResponse(error_code=DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.code)
    secret = token_settings(ctx.node.settings).secret
    if secret is None:
        return DescribeDelegationTokenResponse(error_code=DELEGATION_TOKEN_AUTH_DISABLED.code)
    owners = None
    if request.owners is not None:
        owners = frozenset(str(Principal(each.principal_type, each.principal_name)) for each in request.owners)
    return DescribeDelegationTokenResponse(
        tokens=[
            _told(token, secret, with_requester=ctx.api_version >= _REQUESTERS_SINCE)
            for token in ctx.node.metadata.image.tokens.values()
            if is_visible(token, ctx.principal, owners, may_describe=_may_describe(ctx, token))
        ]
    )


def _may_describe(ctx: Context, token: DelegationTokenRecord) -> bool:
    return ctx.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id) or ctx.may(
        Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner
    )


def _told(token: DelegationTokenRecord, secret: bytes, *, with_requester: bool) -> Token:
    owner = parse_principal(token.owner)
    requester = parse_principal(token.requester) if with_requester else Principal("", "")
    renewers = map(parse_principal, token.renewers)
    return Token(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[Renewer(principal_type=each.kind, principal_name=each.name) for each in renewers],
    )
