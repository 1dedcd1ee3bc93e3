"""RenewDelegationToken (39), versions 1-2: renew a delegation token.

Notes: 2 flexible.
"""

from __future__ import annotations

from penstock.protocol.wire import bytes_, int16, int32, int64, message


@message(key=39, kind="request", versions="1-2", flexible="2+")
class RenewDelegationTokenRequest:
    hmac: bytes = bytes_(secret=True)
    renew_period_ms: int = int64()


@message(key=39, kind="response", versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
