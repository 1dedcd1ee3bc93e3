"""DescribeUserScramCredentials (50), version 0: describe SCRAM credentials, without their secrets."""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=50, kind="request", versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = array("UserName", nullable=True)

    @struct()
    class UserName:
        name: str = string()


@message(key=50, kind="response", versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    results: list[DescribeUserScramCredentialsResult] = array("DescribeUserScramCredentialsResult")

    @struct()
    class DescribeUserScramCredentialsResult:
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = array("CredentialInfo")

    @struct()
    class CredentialInfo:
        mechanism: int = int8()
        iterations: int = int32()
