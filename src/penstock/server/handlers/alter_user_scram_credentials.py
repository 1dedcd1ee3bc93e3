"""AlterUserScramCredentials (51), version 0. Sets and removes what logins by SCRAM are checked with.

Behaviour: clients send passwords salted, the controller keeps keys made of them. One answer a user, when committed; a
user who is named twice is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
    from penstock.server.doors import Context

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


async def handle(ctx: Context, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    def refused(error: ErrorCode, why: str) -> AlterUserScramCredentialsResponse:
        users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
        return AlterUserScramCredentialsResponse(
            results=[Result(user=user, error_code=error.code, error_message=why or None) for user in sorted(users)]
        )

    return await decided(ctx, request, Operation.ALTER, AlterUserScramCredentialsResponse, refused)
