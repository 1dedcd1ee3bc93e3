"""UnregisterBroker (64), version 0: forget a broker's registration."""

from __future__ import annotations

from penstock.protocol.wire import int16, int32, message, string


@message(key=64, kind="request", versions="0", flexible="0+")
class UnregisterBrokerRequest:
    broker_id: int = int32()


@message(key=64, kind="response", versions="0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
