"""UpdateFeatures (57), versions 0-2: change finalized feature levels.

Notes: 1 upgrade types and validation only; 2 one error for all.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, message, string, struct


@message(key=57, kind="request", versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array("FeatureUpdateKey")
    validate_only: bool = boolean(since=1)

    @struct()
    class FeatureUpdateKey:
        feature: str = string()
        max_version_level: int = int16()
        allow_downgrade: bool = boolean(until=0)
        upgrade_type: int = int8(since=1, default=1)


@message(key=57, kind="response", versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    results: list[UpdatableFeatureResult] = array("UpdatableFeatureResult", until=1, ignorable=True)

    @struct(versions="0-1")
    class UpdatableFeatureResult:
        feature: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
