"""DescribeClientQuotas (48), versions 0-1. The limits of the users, client ids and addresses that a filter means.

Behaviour: answered from this node's own image. A filter that makes no sense is refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, Refused
from penstock.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from penstock.security.quotas.describing import QuotaFilter
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
    from penstock.server.doors import Context

Entry = DescribeClientQuotasResponse.EntryData
Part = DescribeClientQuotasResponse.EntityData
Value = DescribeClientQuotasResponse.ValueData


def handle(ctx: Context, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    if not ctx.allow(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return _refused(Refused(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."))
    try:
        asked = QuotaFilter(request.components, strict=request.strict)
    except Refused as refusal:
        return _refused(refusal)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            Entry(
                entity=[Part(entity_type=type, entity_name=name) for type, name in entity],
                values=[Value(key=key, value=value) for key, value in limits.items()],
            )
            for entity, limits in asked.among(ctx.node.metadata.image.quotas)
        ],
    )


def _refused(refusal: Refused) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=refusal.error.code, error_message=refusal.why or None, entries=None)
