"""ExpireDelegationToken (40), versions 1-2: let a delegation token end.

Notes: 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import bytes_, int16, int32, int64, message


@message(key=40, kind="request", versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    hmac: bytes = bytes_(secret=True)
    expiry_time_period_ms: int = int64()


@message(key=40, kind="response", versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
