"""Certificates of nodes and clients: a year, a key of their own, and no name that is somebody else's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from penstock.certificates.authority import EARLIER, Authority, Role, key_pem, key_usage, new_key, pem_of
from penstock.certificates.files import create_private, private_directory, write_private
from penstock.certificates.subjects import (
    BadCertificate,
    alternative_names,
    client_subject,
    common_name,
    is_node_name,
    node_subject,
)

CERTIFICATE_DAYS: Final = 365


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        """As a PEM key store has it: the key and its certificate in one file."""
        return key_pem(self.key) + pem_of((self.certificate,))

    @property
    def subject(self) -> str:
        return self.certificate.subject.rfc4514_string()


def issue_node(
    authority: Authority, node_id: int, hosts: Iterable[str], *, now: datetime, days: int = CERTIFICATE_DAYS
) -> Issued:
    """For a node: it listens and dials, under `CN=node-<id>,O=<cluster id>`."""
    if authority.role is not Role.CLUSTER:
        raise BadCertificate("only the cluster's authority signs nodes")
    subject = node_subject(node_id, authority.cluster_id)
    return _signed(authority, subject, alternative_names(hosts), now=now, days=days)


def issue_client(authority: Authority, user: str, *, now: datetime, days: int = CERTIFICATE_DAYS) -> Issued:
    """For a client, under `CN=<user>`; never by the cluster's authority, never for what could pass for a node."""
    if authority.role is not Role.CLIENTS:
        raise BadCertificate("the cluster's authority signs nodes only: whoever it signs can act as one")
    return _signed(authority, client_subject(user), [], now=now, days=days)


def renew(
    authority: Authority, certificate: x509.Certificate, *, now: datetime, days: int = CERTIFICATE_DAYS
) -> Issued:
    """The same subject and names with a new key and another year, signed by whoever signs now."""
    if not any(issued_by(certificate, each) for each in authority.trusted):
        raise BadCertificate(f"{certificate.subject.rfc4514_string()} was not issued by this authority")
    if authority.role is Role.CLIENTS and is_node_name(common_name(certificate.subject)):
        raise BadCertificate("the clients' authority does not sign nodes")
    return _signed(authority, certificate.subject, _names_of(certificate), now=now, days=days)


def write_issued(issued: Issued, path: Path, *, replace: bool = False) -> None:
    """As one PEM file, for `ssl.keystore.location`. Refuses to write over a file unless it is told to `replace` it."""
    private_directory(path.parent)
    if replace:
        write_private(path, issued.pem)
        return
    try:
        create_private(path, issued.pem)
    except FileExistsError:
        raise BadCertificate(f"{path} is there already, and the key in it may be in use") from None


def _signed(
    authority: Authority, subject: x509.Name, names: list[x509.GeneralName], *, now: datetime, days: int
) -> Issued:
    ends = authority.certificate.not_valid_after_utc
    if not now < ends:
        raise BadCertificate(f"the authority itself ended on {ends:%Y-%m-%d}; rotate it first")
    if days < 1:
        raise BadCertificate(f"a certificate of {days} days")
    key = new_key()
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if authority.role is Role.CLUSTER:
        uses.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(max(now - EARLIER, authority.certificate.not_valid_before_utc))
        .not_valid_after(min(now + timedelta(days=days), ends))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def _names_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether the authority's key has signed it."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):  # a wrong name, a key of another kind, a wrong signature
        return False
    return True
