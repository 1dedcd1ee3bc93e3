"""CreateAcls (30), versions 1-3: add access rules.

Notes: 2 flexible; 3 user resources.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=30, kind="request", versions="1-3", flexible="2+")
class CreateAclsRequest:
    creations: list[AclCreation] = array("AclCreation")

    @struct()
    class AclCreation:
        resource_type: int = int8()
        resource_name: str = string()
        resource_pattern_type: int = int8(default=3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()


@message(key=30, kind="response", versions="1-3", flexible="2+")
class CreateAclsResponse:
    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array("AclCreationResult")

    @struct()
    class AclCreationResult:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
