"""SaslHandshake (17), versions 0-1: choose a SASL mechanism.

Notes: 0 is followed by bare SASL tokens, 1 by SaslAuthenticate requests. Never flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int16, message, string


@message(key=17, kind="request", versions="0-1", flexible="none")
class SaslHandshakeRequest:
    mechanism: str = string()


@message(key=17, kind="response", versions="0-1", flexible="none")
class SaslHandshakeResponse:
    error_code: int = int16()
    mechanisms: list[str] = array(string)
