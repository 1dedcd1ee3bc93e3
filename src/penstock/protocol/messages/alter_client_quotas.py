"""AlterClientQuotas (49), versions 0-1: change client quotas.

Notes: 1 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, float64, int16, int32, message, string, struct


@message(key=49, kind="request", versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: list[EntryData] = array("EntryData")
    validate_only: bool = boolean()

    @struct()
    class EntryData:
        entity: list[AlterClientQuotasRequest.EntityData] = array("EntityData")
        ops: list[AlterClientQuotasRequest.OpData] = array("OpData")

    @struct()
    class EntityData:
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)

    @struct()
    class OpData:
        key: str = string()
        value: float = float64()
        remove: bool = boolean()


@message(key=49, kind="response", versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: int = int32()
    entries: list[EntryData] = array("EntryData")

    @struct()
    class EntryData:
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        entity: list[AlterClientQuotasResponse.EntityData] = array("EntityData")

    @struct()
    class EntityData:
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)
