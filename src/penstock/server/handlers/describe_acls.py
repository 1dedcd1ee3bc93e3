"""DescribeAcls (29), versions 1-3. Lists the ACLs that match a filter, by resource.

Behaviour: answered from this node's own image. SECURITY_DISABLED when no authorizer is configured. A filter with an
unknown element costs its connection, as in Kafka.
Notes: v3 user resources; older versions cannot name them, and are told only what they can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from penstock.protocol.messages.describe_acls import DescribeAclsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.acl_requests import check_known

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_acls import DescribeAclsRequest
    from penstock.server.doors import Context

Resource = DescribeAclsResponse.DescribeAclsResource
Description = DescribeAclsResponse.AclDescription

_USERS_SINCE: Final = 3


def handle(ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    check_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if not ctx.allow(Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeAclsResponse(
            error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message="Cluster authorization failed."
        )
    acls = ctx.node.authorizer.acls
    if acls is None:
        return DescribeAclsResponse(
            error_code=SECURITY_DISABLED.code, error_message="No Authorizer is configured on the broker"
        )
    from penstock.security.acls import acl_filter, described

    asked = acl_filter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            Resource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern,
                acls=[
                    Description(
                        principal=entry.principal,
                        host=entry.host,
                        operation=entry.operation,
                        permission_type=entry.permission,
                    )
                    for entry in entries
                ],
            )
            for (resource_type, name, pattern), entries in described(acls.entries.values(), asked).items()
            if resource_type != ResourceType.USER or ctx.api_version >= _USERS_SINCE
        ],
    )
