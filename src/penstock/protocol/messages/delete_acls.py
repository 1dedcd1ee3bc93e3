"""DeleteAcls (31), versions 1-3: remove access rules that match filters.

Notes: 2 flexible; 3 user resources.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=31, kind="request", versions="1-3", flexible="2+")
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter] = array("DeleteAclsFilter")

    @struct()
    class DeleteAclsFilter:
        resource_type_filter: int = int8()
        resource_name_filter: str | None = string(nullable=True)
        pattern_type_filter: int = int8(default=3)
        principal_filter: str | None = string(nullable=True)
        host_filter: str | None = string(nullable=True)
        operation: int = int8()
        permission_type: int = int8()


@message(key=31, kind="response", versions="1-3", flexible="2+")
class DeleteAclsResponse:
    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array("DeleteAclsFilterResult")

    @struct()
    class DeleteAclsFilterResult:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = array("DeleteAclsMatchingAcl")

    @struct()
    class DeleteAclsMatchingAcl:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(default=3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()
