"""PushTelemetry (72), version 0: push client metrics."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import boolean, bytes_, int8, int16, int32, message, uuid


@message(key=72, kind="request", versions="0", flexible="0+")
class PushTelemetryRequest:
    client_instance_id: Uuid = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = bytes_()


@message(key=72, kind="response", versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
