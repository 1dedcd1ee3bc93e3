"""UpdateFeatures (57), versions 0-2. Raises or lowers the feature levels the cluster has agreed on.

Behaviour: all updates together or none. `kraft.version` is the quorum's own and refused here.
Notes: v0 allow_downgrade, v1 upgrade type (1 upgrade, 2 safe and 3 unsafe downgrade) and validate-only; v2 has no
results per feature any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, Refused
from penstock.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.server.doors import Context


async def handle(ctx: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return UpdateFeaturesResponse(
            error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message="Cluster authorization failed."
        )
    try:
        reply = await submitted(ctx, request, UpdateFeaturesResponse)
    except Refused as refusal:
        return UpdateFeaturesResponse(error_code=refusal.error.code, error_message=refusal.why or None)
    return reply
