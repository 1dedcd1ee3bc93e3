"""What certificates say, for people: whose, for where, until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from penstock.certificates.authority import fingerprint_of, load_certificates
from penstock.certificates.subjects import BadCertificate
from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.stores import read_file


@dataclass(frozen=True, slots=True)
class Shown:
    """One certificate of a file."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    signs_others: bool
    not_before: datetime
    not_after: datetime
    days_left: int
    """Whole days; negative when it has ended."""
    fingerprint: str


def show(path: Path, *, now: datetime) -> tuple[Shown, ...]:
    """All certificates of a PEM file, in its order. Keys in it are not looked at."""
    try:
        data = read_file(str(path))
    except BadTls as refusal:
        raise BadCertificate(str(refusal)) from None
    return tuple(shown(each, now=now) for each in load_certificates(data, path))


def shown(certificate: x509.Certificate, *, now: datetime) -> Shown:
    return Shown(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        names=_names(certificate),
        signs_others=_signs_others(certificate),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        days_left=(certificate.not_valid_after_utc - now).days,
        fingerprint=fingerprint_of(certificate),
    )


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(each.value) for each in names)


def _signs_others(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
