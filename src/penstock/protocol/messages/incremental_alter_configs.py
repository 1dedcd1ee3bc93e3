"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append or subtract single config values.

Notes: 1 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, message, string, struct


@message(key=44, kind="request", versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    resources: list[AlterConfigsResource] = array("AlterConfigsResource")
    validate_only: bool = boolean()

    @struct()
    class AlterConfigsResource:
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = array("AlterableConfig")

    @struct()
    class AlterableConfig:
        name: str = string()
        config_operation: int = int8()
        value: str | None = string(nullable=True, secret=True)


@message(key=44, kind="response", versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array("AlterConfigsResourceResponse")

    @struct()
    class AlterConfigsResourceResponse:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()
