"""CreateDelegationToken (38), versions 1-3: make a delegation token.

Notes: 2 flexible; 3 a token for another owner.
"""

from __future__ import annotations

from penstock.protocol.wire import array, bytes_, int16, int32, int64, message, string, struct


@message(key=38, kind="request", versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = string(since=3, nullable=True)
    owner_principal_name: str | None = string(since=3, nullable=True)
    renewers: list[CreatableRenewers] = array("CreatableRenewers")
    max_lifetime_ms: int = int64()

    @struct()
    class CreatableRenewers:
        principal_type: str = string()
        principal_name: str = string()


@message(key=38, kind="response", versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(since=3)
    token_requester_principal_name: str = string(since=3)
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_(secret=True)
    throttle_time_ms: int = int32()
