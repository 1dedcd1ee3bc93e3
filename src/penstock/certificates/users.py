"""The first user of a cluster, as records for the snapshot that it starts from."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from penstock.protocol.disk.metadata_security import UserScramCredentialRecord
from penstock.security.scram.keys import (
    BY_NAME,
    ITERATIONS_DEFAULT,
    RANDOM_BYTES,
    Credential,
    Mechanism,
    credential_of,
    salt_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.records import VersionedRecord
    from penstock.model.secret import Secret


def scram_records(user: str, password: Secret, mechanisms: Iterable[str]) -> list[VersionedRecord]:
    """One for each mechanism, each with a salt of its own. Nothing in them gives the password back."""
    known = [BY_NAME[name] for name in mechanisms]
    return [scram_record(user, each, _credential(password, each)) for each in known]


def scram_record(user: str, mechanism: Mechanism, credential: Credential) -> VersionedRecord:
    return (
        UserScramCredentialRecord(
            name=user,
            mechanism=mechanism.type,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        ),
        0,
    )


def _credential(password: Secret, mechanism: Mechanism) -> Credential:
    salt = salt_of(secrets.token_bytes(RANDOM_BYTES))
    work = mechanism.derive(password.reveal(), salt, ITERATIONS_DEFAULT)
    return credential_of(mechanism, work.run(), salt, ITERATIONS_DEFAULT)
