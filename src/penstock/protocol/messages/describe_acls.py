"""DescribeAcls (29), versions 1-3: list access rules that match a filter.

Notes: 2 flexible; 3 user resources.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=29, kind="request", versions="1-3", flexible="2+")
class DescribeAclsRequest:
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable=True)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable=True)
    host_filter: str | None = string(nullable=True)
    operation: int = int8()
    permission_type: int = int8()


@message(key=29, kind="response", versions="1-3", flexible="2+")
class DescribeAclsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    resources: list[DescribeAclsResource] = array("DescribeAclsResource")

    @struct()
    class DescribeAclsResource:
        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(default=3)
        acls: list[DescribeAclsResponse.AclDescription] = array("AclDescription")

    @struct()
    class AclDescription:
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()
