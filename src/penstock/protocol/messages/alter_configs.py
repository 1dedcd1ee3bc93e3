"""AlterConfigs (33), versions 0-2: replace the whole configuration of resources; superseded by IncrementalAlterConfigs.

Notes: 1 is as 0; 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, message, string, struct


@message(key=33, kind="request", versions="0-2", flexible="2+")
class AlterConfigsRequest:
    resources: list[AlterConfigsResource] = array("AlterConfigsResource")
    validate_only: bool = boolean()

    @struct()
    class AlterConfigsResource:
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[AlterConfigsRequest.AlterableConfig] = array("AlterableConfig")

    @struct()
    class AlterableConfig:
        name: str = string()
        value: str | None = string(nullable=True, secret=True)


@message(key=33, kind="response", versions="0-2", flexible="2+")
class AlterConfigsResponse:
    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array("AlterConfigsResourceResponse")

    @struct()
    class AlterConfigsResourceResponse:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()
