"""AlterClientQuotas (49), versions 0-1. Sets and removes limits of users, client ids and addresses.

Behaviour: an entity gets all of its changes or none, through the controller; `validate_only` only checks. Answers when
committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from penstock.server.doors import Operation
from penstock.server.handlers.shared.controller_requests import decided

if TYPE_CHECKING:
    from penstock.model.errors import ErrorCode
    from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
    from penstock.server.doors import Context

Entry = AlterClientQuotasResponse.EntryData
Part = AlterClientQuotasResponse.EntityData


async def handle(ctx: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    def refused(error: ErrorCode, why: str) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(
            entries=[
                Entry(
                    error_code=error.code,
                    error_message=why or None,
                    entity=[Part(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity],
                )
                for entry in request.entries
            ]
        )

    return await decided(ctx, request, Operation.ALTER_CONFIGS, AlterClientQuotasResponse, refused)
