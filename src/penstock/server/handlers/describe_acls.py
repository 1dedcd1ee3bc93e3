"""DescribeAcls (29), versions 1-3. Lists the access rules that match a filter; there is no authorizer to have any.

Behaviour: SECURITY_DISABLED. A filter with an unknown element costs its connection, as in Kafka.
Notes: v3 user resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from penstock.protocol.messages.describe_acls import DescribeAclsResponse
from penstock.server.acl_requests import check_known
from penstock.server.context import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.describe_acls import DescribeAclsRequest
    from penstock.server.context import Context


def handle(ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    check_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if not ctx.allow(Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeAclsResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code, error_message=None)
    return DescribeAclsResponse(
        error_code=SECURITY_DISABLED.code, error_message="No Authorizer is configured on the broker"
    )
