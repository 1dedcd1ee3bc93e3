"""ListConfigResources (74), versions 0-1: list resources that have a configuration.

Notes: 0 knows client metrics only; 1 all resource types.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=74, kind="request", versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: list[int] = array(int8, since=1)


@message(key=74, kind="response", versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array("ConfigResource")

    @struct()
    class ConfigResource:
        resource_name: str = string()
        resource_type: int = int8(since=1, default=16, ignorable=True)
