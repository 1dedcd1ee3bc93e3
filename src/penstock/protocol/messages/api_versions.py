"""ApiVersions (18), versions 0-4: say which APIs and features a node serves; the first request of every client.

Notes: 1 throttle time; 3 flexible, names the client software and tells features in tags; 4 tells features whose
lowest level is 0 as they are. The response header stays at version 0, because the client cannot know better yet.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int16, int32, int64, message, string, struct


@message(key=18, kind="request", versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)


@message(key=18, kind="response", versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: int = int16()
    api_keys: list[ApiVersion] = array("ApiVersion")
    throttle_time_ms: int = int32(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array("SupportedFeatureKey", since=3, tag=0, ignorable=True)
    finalized_features_epoch: int = int64(since=3, default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array("FinalizedFeatureKey", since=3, tag=2, ignorable=True)
    zk_migration_ready: bool = boolean(since=3, tag=3, ignorable=True)

    @struct()
    class ApiVersion:
        api_key: int = int16()
        min_version: int = int16()
        max_version: int = int16()

    @struct(versions="3+")
    class SupportedFeatureKey:
        name: str = string()
        min_version: int = int16()
        max_version: int = int16()

    @struct(versions="3+")
    class FinalizedFeatureKey:
        name: str = string()
        max_version_level: int = int16()
        min_version_level: int = int16()
