"""The headers that precede every request and response.

The client id stays a string with a two-byte length in every version, so that a node can read who speaks before it knows
whether it serves the version.
"""

from __future__ import annotations

from penstock.protocol.wire import int16, int32, message, string


@message(kind="header", versions="1-2", flexible="2+")
class RequestHeader:
    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string(nullable=True, flexible="none")


@message(kind="header", versions="0-1", flexible="1+")
class ResponseHeader:
    correlation_id: int = int32()
