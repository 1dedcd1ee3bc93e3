"""ControllerRegistration (70), version 0: register a controller with the active controller."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, message, string, struct, uint16, uuid


@message(key=70, kind="request", versions="0", flexible="0+")
class ControllerRegistrationRequest:
    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array("Listener")
    features: list[Feature] = array("Feature")

    @struct()
    class Listener:
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    @struct()
    class Feature:
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()


@message(key=70, kind="response", versions="0", flexible="0+")
class ControllerRegistrationResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
