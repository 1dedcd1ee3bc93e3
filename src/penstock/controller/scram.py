"""AlterUserScramCredentials: what is kept of passwords. Clients send them salted; the keys are made here."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from penstock.controller.decision import Decision, World
from penstock.metadata import features
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import (
    DUPLICATE_RESOURCE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    Refused,
)
from penstock.protocol.disk.metadata_security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

HASH_OF: Final = {1: "sha256", 2: "sha512"}
"""The hash of a mechanism by its number: SCRAM-SHA-256, SCRAM-SHA-512."""

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384

_Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
_Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def decide_alter(world: World, request: AlterUserScramCredentialsRequest) -> Decision:
    """AlterUserScramCredentials: one answer a user. The good changes are one atomic batch, deletions before the others.

    A user who is named twice is refused whatever is asked, because nobody could say in which order it was meant.
    """
    changes: dict[str, _Deletion | _Upsertion] = {}
    refusals: dict[str, Refused] = {}
    asked: list[_Deletion | _Upsertion] = [*request.deletions, *request.upsertions]
    for change in asked:
        if change.name in refusals:
            continue
        try:
            if changes.pop(change.name, None) is not None:
                raise Refused(DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
            _check(world, change)
        except Refused as refused:
            refusals[change.name] = refused
            continue
        changes[change.name] = change
    results = [_Result(user=name, error_message=None) for name in changes]
    results += [
        _Result(user=name, error_code=refused.error.code, error_message=refused.why)
        for name, refused in refusals.items()
    ]
    records = [_record(world, change) for change in changes.values()]
    return Decision(records, AlterUserScramCredentialsResponse(results=results), "alter scram credentials")


def _check(world: World, change: _Deletion | _Upsertion) -> None:
    if world.image.metadata_version < features.METADATA_3_5_SCRAM:
        raise Refused(UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not change.name:
        raise Refused(UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in HASH_OF:
        raise Refused(UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, _Deletion):
        if (change.mechanism, change.name) not in world.image.scram:
            raise Refused(RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif change.iterations < ITERATIONS_MIN:
        raise Refused(UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > ITERATIONS_MAX:
        raise Refused(UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _record(world: World, change: _Deletion | _Upsertion) -> VersionedRecord:
    if isinstance(change, _Deletion):
        return world.versioned(RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism))
    hash_name = HASH_OF[change.mechanism]
    client_key = hmac.digest(change.salted_password, b"Client Key", hash_name)
    return world.versioned(
        UserScramCredentialRecord(
            name=change.name,
            mechanism=change.mechanism,
            salt=change.salt,
            stored_key=hashlib.new(hash_name, client_key).digest(),
            server_key=hmac.digest(change.salted_password, b"Server Key", hash_name),
            iterations=change.iterations,
        )
    )
