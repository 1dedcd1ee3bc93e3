"""Envelope (58), version 0: carry a client's request from a broker to the controller, with its principal."""

from __future__ import annotations

from penstock.protocol.wire import bytes_, int16, message


@message(key=58, kind="request", versions="0", flexible="0+")
class EnvelopeRequest:
    request_data: bytes = bytes_(secret=True)
    request_principal: bytes | None = bytes_(nullable=True)
    client_host_address: bytes = bytes_()


@message(key=58, kind="response", versions="0", flexible="0+")
class EnvelopeResponse:
    response_data: bytes | None = bytes_(nullable=True, default=None, secret=True)
    error_code: int = int16()
