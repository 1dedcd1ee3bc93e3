"""DescribeDelegationToken (41), versions 1-3: list delegation tokens.

Notes: 2 flexible; 3 who asked for the token.
"""

from __future__ import annotations

from penstock.protocol.wire import array, bytes_, int16, int32, int64, message, string, struct


@message(key=41, kind="request", versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = array("DescribeDelegationTokenOwner", nullable=True)

    @struct()
    class DescribeDelegationTokenOwner:
        principal_type: str = string()
        principal_name: str = string()


@message(key=41, kind="response", versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array("DescribedDelegationToken")
    throttle_time_ms: int = int32()

    @struct()
    class DescribedDelegationToken:
        principal_type: str = string()
        principal_name: str = string()
        token_requester_principal_type: str = string(since=3)
        token_requester_principal_name: str = string(since=3)
        issue_timestamp: int = int64()
        expiry_timestamp: int = int64()
        max_timestamp: int = int64()
        token_id: str = string()
        hmac: bytes = bytes_(secret=True)
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = array(
            "DescribedDelegationTokenRenewer"
        )

    @struct()
    class DescribedDelegationTokenRenewer:
        principal_type: str = string()
        principal_name: str = string()
