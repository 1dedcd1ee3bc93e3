"""DescribeConfigs (32), versions 1-4: read the configuration of topics, brokers, groups and more.

Notes: 1 sources and synonyms; 2 throttle time in use; 3 type and documentation; 4 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, message, string, struct


@message(key=32, kind="request", versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = array("DescribeConfigsResource")
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)

    @struct()
    class DescribeConfigsResource:
        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array(string, nullable=True)


@message(key=32, kind="response", versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array("DescribeConfigsResult")

    @struct()
    class DescribeConfigsResult:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = array("DescribeConfigsResourceResult")

    @struct()
    class DescribeConfigsResourceResult:
        name: str = string()
        value: str | None = string(nullable=True)
        read_only: bool = boolean()
        config_source: int = int8(default=-1, ignorable=True)
        is_sensitive: bool = boolean()
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = array("DescribeConfigsSynonym", ignorable=True)
        config_type: int = int8(since=3, ignorable=True)
        documentation: str | None = string(since=3, nullable=True, ignorable=True)

    @struct()
    class DescribeConfigsSynonym:
        name: str = string()
        value: str | None = string(nullable=True)
        source: int = int8()
