"""Metadata-log records about configuration and client quotas. A null value takes a setting away."""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, float64, int8, message, string, struct


@message(key=4, kind="metadata", versions="0", flexible="0+")
class ConfigRecord:
    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable=True, secret=True)


@message(key=14, kind="metadata", versions="0", flexible="0+")
class ClientQuotaRecord:
    entity: list[EntityData] = array("EntityData")
    key: str = string()
    value: float = float64()
    remove: bool = boolean()

    @struct()
    class EntityData:
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)
