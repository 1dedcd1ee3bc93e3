"""A new authority in place of an old one, while everything goes on: trust both, issue anew, drop the old.

| step | trusted | signs | then |
|---|---|---|---|
| none | old | old | |
| `begin_rotation` | old, new | old | give `ca.pem` to everybody who checks certificates |
| `switch_rotation` | old, new | new | renew every certificate |
| `finish_rotation` | new | new | give `ca.pem` to everybody again |

Each step ends with one file put in its place, so a step that was cut short has either not happened or happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from cryptography import x509

from penstock.certificates.authority import (
    CERTIFICATES,
    KEY,
    NEXT_KEY,
    Authority,
    key_pem,
    load_key,
    new_key,
    open_authority,
    pem_of,
    self_signed,
    spki_of,
)
from penstock.certificates.files import move, remove, write_private
from penstock.certificates.subjects import BadCertificate, common_name
from penstock.transport.tls.stores import read_private


class Step(StrEnum):
    """Where a rotation stands."""

    NONE = "none"
    TRUSTING_BOTH = "trusting both"
    ISSUING = "issuing"


def rotation_step(authority: Authority) -> Step:
    """Told by the files: two trusted certificates are a rotation, and a key that waits says that it has just begun."""
    if len(authority.trusted) == 1:
        return Step.NONE
    return Step.TRUSTING_BOTH if (authority.directory / NEXT_KEY).exists() else Step.ISSUING


def begin_rotation(authority: Authority, *, now: datetime) -> Authority:
    """The new authority is made and trusted beside the old one, which still signs."""
    _expect(authority, Step.NONE)
    key = new_key()
    newcomer = self_signed(key, authority.role, authority.cluster_id, generation=_generation(authority) + 1, now=now)
    # A key that was left here by a beginning without an end is overwritten; nobody has trusted it.
    write_private(authority.directory / NEXT_KEY, key_pem(key))
    trusted = (authority.certificate, newcomer)
    write_private(authority.directory / CERTIFICATES, pem_of(trusted))
    return replace(authority, trusted=trusted)


def switch_rotation(authority: Authority) -> Authority:
    """The new authority signs from now on. The old key is gone: what it signed stays trusted, nothing is added."""
    _expect(authority, Step.TRUSTING_BOTH)
    waiting = authority.directory / NEXT_KEY
    key = load_key(read_private(str(waiting)), waiting)
    if not any(spki_of(each.public_key()) == spki_of(key.public_key()) for each in authority.trusted):
        raise BadCertificate(f"{waiting} is the key of none of the trusted certificates")
    move(waiting, authority.directory / KEY)
    return open_authority(authority.directory)


def finish_rotation(authority: Authority, still_used: Iterable[x509.Certificate]) -> Authority:
    """Only the new authority is trusted. Refused while one of `still_used`, all that are known, is the old one's."""
    _expect(authority, Step.ISSUING)
    for certificate in still_used:
        if certificate.issuer != authority.certificate.subject:
            subject = certificate.subject.rfc4514_string()
            raise BadCertificate(f"{subject} was issued by the old authority; renew it before that is dropped")
    write_private(authority.directory / CERTIFICATES, pem_of((authority.certificate,)))
    remove(authority.directory / NEXT_KEY)
    return replace(authority, trusted=(authority.certificate,))


def _expect(authority: Authority, step: Step) -> None:
    found = rotation_step(authority)
    if found is not step:
        raise BadCertificate(f"the rotation stands at {found.value!r}; this step follows on {step.value!r}")


def _generation(authority: Authority) -> int:
    found = re.search(r" (\d+)$", common_name(authority.certificate.subject))
    return int(found[1]) if found else 1
