"""CreateAcls (30), versions 1-3. Adds access rules; there is no authorizer to keep any.

Behaviour: SECURITY_DISABLED for each of them. One with an unknown element costs its connection, as in Kafka.
Notes: v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.create_acls import CreateAclsResponse
from penstock.server.acl_requests import check_known, why_unaltered

if TYPE_CHECKING:
    from penstock.protocol.messages.create_acls import CreateAclsRequest
    from penstock.server.context import Context

Result = CreateAclsResponse.AclCreationResult


def handle(ctx: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    for each in request.creations:
        check_known(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    error, why = why_unaltered(ctx)
    return CreateAclsResponse(results=[Result(error_code=error.code, error_message=why) for _ in request.creations])
