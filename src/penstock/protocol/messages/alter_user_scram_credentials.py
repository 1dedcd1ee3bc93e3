"""AlterUserScramCredentials (51), version 0: add or remove SCRAM credentials."""

from __future__ import annotations

from penstock.protocol.wire import array, bytes_, int8, int16, int32, message, string, struct


@message(key=51, kind="request", versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = array("ScramCredentialDeletion")
    upsertions: list[ScramCredentialUpsertion] = array("ScramCredentialUpsertion")

    @struct()
    class ScramCredentialDeletion:
        name: str = string()
        mechanism: int = int8()

    @struct()
    class ScramCredentialUpsertion:
        name: str = string()
        mechanism: int = int8()
        iterations: int = int32()
        salt: bytes = bytes_(secret=True)
        salted_password: bytes = bytes_(secret=True)


@message(key=51, kind="response", versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array("AlterUserScramCredentialsResult")

    @struct()
    class AlterUserScramCredentialsResult:
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
