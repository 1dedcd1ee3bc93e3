"""DeleteAcls (31), versions 1-3. Removes the ACLs that match filters, through the controller.

Behaviour: each filter is answered with all that it removed, when that is committed. SECURITY_DISABLED for each of them
when no authorizer is configured. One with an unknown element costs its connection, as in Kafka.
Notes: v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import Refused
from penstock.protocol.messages.delete_acls import DeleteAclsResponse
from penstock.server.handlers.shared.acl_requests import check_known, unaltered
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.protocol.messages.delete_acls import DeleteAclsRequest
    from penstock.server.doors import Context, Outcome

Result = DeleteAclsResponse.DeleteAclsFilterResult


def handle(ctx: Context, request: DeleteAclsRequest) -> Outcome:
    for each in request.filters:
        check_known(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
    refusal = unaltered(ctx)
    return _delete(ctx, request) if refusal is None else _refused(request, refusal)


async def _delete(ctx: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    try:
        return await submitted(ctx, request, DeleteAclsResponse)
    except Refused as refusal:
        return _refused(request, refusal)


def _refused(request: DeleteAclsRequest, refusal: Refused) -> DeleteAclsResponse:
    result = Result(error_code=refusal.error.code, error_message=refusal.why or None)
    return DeleteAclsResponse(filter_results=[result for _ in request.filters])
