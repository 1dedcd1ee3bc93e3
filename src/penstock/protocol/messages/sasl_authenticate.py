"""SaslAuthenticate (36), versions 0-2: carry SASL tokens after SaslHandshake version 1.

Notes: 1 session lifetime; 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import bytes_, int16, int64, message, string


@message(key=36, kind="request", versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: bytes = bytes_(secret=True)


@message(key=36, kind="response", versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    auth_bytes: bytes = bytes_(secret=True)
    session_lifetime_ms: int = int64(since=1, ignorable=True)
