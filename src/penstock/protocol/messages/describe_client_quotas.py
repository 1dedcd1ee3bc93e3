"""DescribeClientQuotas (48), versions 0-1: read client quotas.

Notes: 1 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, float64, int8, int16, int32, message, string, struct


@message(key=48, kind="request", versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: list[ComponentData] = array("ComponentData")
    strict: bool = boolean()

    @struct()
    class ComponentData:
        entity_type: str = string()
        match_type: int = int8()
        match: str | None = string(nullable=True)


@message(key=48, kind="response", versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    entries: list[EntryData] | None = array("EntryData", nullable=True)

    @struct()
    class EntryData:
        entity: list[DescribeClientQuotasResponse.EntityData] = array("EntityData")
        values: list[DescribeClientQuotasResponse.ValueData] = array("ValueData")

    @struct()
    class EntityData:
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)

    @struct()
    class ValueData:
        key: str = string()
        value: float = float64()
