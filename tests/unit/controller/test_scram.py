"""AlterUserScramCredentials."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from penstock.controller.scram import decide_alter
from penstock.model.errors import (
    DUPLICATE_RESOURCE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.protocol.disk.metadata_security import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.unit.controller.security_desk import SecurityDesk

Request = AlterUserScramCredentialsRequest
SHA_256, SHA_512 = 1, 2


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4_096) -> Request.ScramCredentialUpsertion:
    return Request.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
    )


def deletion(name: str, mechanism: int = SHA_256) -> Request.ScramCredentialDeletion:
    return Request.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(desk: SecurityDesk, *changes: Any) -> dict[str, int]:
    request = Request(
        deletions=[each for each in changes if isinstance(each, Request.ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, Request.ScramCredentialUpsertion)],
    )
    reply = desk.do(decide_alter(desk.world, request))
    assert len({result.user for result in reply.results}) == len(reply.results)
    return {result.user: result.error_code for result in reply.results}


def test_a_password_is_kept_as_the_two_keys_of_rfc_5802() -> None:
    desk = SecurityDesk()
    assert alter(desk, upsertion("alice", SHA_512)) == {"alice": 0}
    client_key = hmac.digest(b"salted", b"Client Key", "sha512")
    assert desk.image.scram == {
        (SHA_512, "alice"): UserScramCredentialRecord(
            name="alice",
            mechanism=SHA_512,
            salt=b"salt",
            stored_key=hashlib.sha512(client_key).digest(),
            server_key=hmac.digest(b"salted", b"Server Key", "sha512"),
            iterations=4_096,
        )
    }


def test_a_salted_password_reaches_no_record() -> None:
    decision = decide_alter(SecurityDesk().world, Request(upsertions=[upsertion("alice")]))
    assert b"salted" not in repr(decision.records).encode()


def test_a_credential_goes_and_the_other_mechanisms_stays() -> None:
    desk = SecurityDesk()
    alter(desk, upsertion("alice"))
    alter(desk, upsertion("alice", SHA_512), upsertion("bob"))
    assert alter(desk, deletion("alice"), upsertion("carol")) == {"alice": 0, "carol": 0}
    assert set(desk.image.scram) == {(SHA_512, "alice"), (SHA_256, "bob"), (SHA_256, "carol")}


def test_who_is_named_twice_is_left_alone_and_deletions_come_first() -> None:
    desk = SecurityDesk()
    alter(desk, upsertion("alice"), upsertion("bob"))
    told = alter(desk, upsertion("alice", SHA_512), deletion("alice"), upsertion("dan"), upsertion("dan", SHA_512))
    assert told == {"alice": DUPLICATE_RESOURCE.code, "dan": DUPLICATE_RESOURCE.code}
    assert set(desk.image.scram) == {(SHA_256, "alice"), (SHA_256, "bob")}
    request = Request(upsertions=[upsertion("carol")], deletions=[deletion("bob")])
    kinds = [record.__class__ for record, _ in decide_alter(desk.world, request).records]
    assert kinds == [RemoveUserScramCredentialRecord, UserScramCredentialRecord]


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        (upsertion(""), UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("a", 3), UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("a", iterations=4_095), UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("a", iterations=16_385), UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (deletion("a"), RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        (deletion("a", 0), UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
    ],
)
def test_a_bad_change_is_refused_in_kafkas_words(change: Any, error: ErrorCode, why: str) -> None:
    deletes = isinstance(change, Request.ScramCredentialDeletion)
    request = Request(deletions=[change]) if deletes else Request(upsertions=[change])
    decision = decide_alter(SecurityDesk().world, request)
    (told,) = decision.reply.results
    assert (decision.records, told.error_code, told.error_message) == ([], error.code, why)


def test_a_level_that_has_no_record_for_credentials_writes_none() -> None:
    assert alter(SecurityDesk(level=10), upsertion("alice")) == {"alice": UNSUPPORTED_VERSION.code}
    assert alter(SecurityDesk(level=11), upsertion("alice")) == {"alice": 0}
