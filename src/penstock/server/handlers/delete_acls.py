"""DeleteAcls (31), versions 1-3. Removes access rules; there is no authorizer to keep any.

Behaviour: SECURITY_DISABLED for each of them. One with an unknown element costs its connection, as in Kafka.
Notes: v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.delete_acls import DeleteAclsResponse
from penstock.server.acl_requests import check_known, why_unaltered

if TYPE_CHECKING:
    from penstock.protocol.messages.delete_acls import DeleteAclsRequest
    from penstock.server.context import Context

Result = DeleteAclsResponse.DeleteAclsFilterResult


def handle(ctx: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    for each in request.filters:
        check_known(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
    error, why = why_unaltered(ctx)
    return DeleteAclsResponse(
        filter_results=[Result(error_code=error.code, error_message=why) for _ in request.filters]
    )
