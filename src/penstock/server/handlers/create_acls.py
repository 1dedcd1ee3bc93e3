"""CreateAcls (30), versions 1-3. Adds ACLs through the controller.

Behaviour: every ACL is added or refused on its own; one that is there already is no mistake. Answers when committed.
SECURITY_DISABLED for each of them when no authorizer is configured. One with an unknown element costs its connection,
as in Kafka.
Notes: v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import Refused
from penstock.protocol.messages.create_acls import CreateAclsResponse
from penstock.server.handlers.shared.acl_requests import check_known, unaltered
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.protocol.messages.create_acls import CreateAclsRequest
    from penstock.server.doors import Context, Outcome

Result = CreateAclsResponse.AclCreationResult


def handle(ctx: Context, request: CreateAclsRequest) -> Outcome:
    for each in request.creations:
        check_known(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    refusal = unaltered(ctx)
    return _create(ctx, request) if refusal is None else _refused(request, refusal)


async def _create(ctx: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    try:
        return await submitted(ctx, request, CreateAclsResponse)
    except Refused as refusal:
        return _refused(request, refusal)


def _refused(request: CreateAclsRequest, refusal: Refused) -> CreateAclsResponse:
    result = Result(error_code=refusal.error.code, error_message=refusal.why or None)
    return CreateAclsResponse(results=[result for _ in request.creations])
