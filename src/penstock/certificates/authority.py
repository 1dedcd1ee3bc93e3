"""An authority: a certificate that signs others, its key, and the directory in which both are.

ca.pem     the certificates that are trusted: one, or two while an authority is being replaced
ca.key     the key that signs. Which of the certificates is the signer's is told by the key itself
next.key   the key that will sign, between the first and the second step of a rotation
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from penstock.certificates.files import private_directory, write_private
from penstock.certificates.subjects import BadCertificate, authority_subject
from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.stores import read_file, read_private

__all__ = ["Authority", "BadCertificate", "Role", "create_authority", "open_authority"]

AUTHORITY_DAYS: Final = 3650
# Clocks of the machines that will check it may be behind.
EARLIER: Final = timedelta(hours=1)
CERTIFICATES, KEY, NEXT_KEY = "ca.pem", "ca.key", "next.key"


class Role(StrEnum):
    """Whom an authority signs."""

    CLUSTER = "cluster"
    CLIENTS = "clients"

    @property
    def authority_name(self) -> str:
        return f"Penstock {self.value} CA"


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority as its directory has it."""

    role: Role
    cluster_id: str
    directory: Path
    certificate: x509.Certificate
    """The signer's."""
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    trusted: tuple[x509.Certificate, ...]
    """All that are trusted at the moment, the signer's among them."""

    @property
    def trusted_pem(self) -> bytes:
        """For trust stores of those who check certificates of this authority."""
        return pem_of(self.trusted)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the signer's certificate, for people to compare."""
        return fingerprint_of(self.certificate)


def create_authority(directory: Path, role: Role, cluster_id: str, *, now: datetime) -> Authority:
    """Makes a key and its certificate (ECDSA P-256, ten years). Refuses a directory that has one."""
    private_directory(directory)
    if (directory / CERTIFICATES).exists():
        raise BadCertificate(f"{directory} holds an authority already")
    # A key without a certificate is of somebody who was killed here; it is as good as a new one.
    key = _key_in(directory) if (directory / KEY).exists() else new_key()
    certificate = self_signed(key, role, cluster_id, generation=1, now=now)
    write_private(directory / KEY, key_pem(key))
    write_private(directory / CERTIFICATES, pem_of((certificate,)))
    return Authority(role, cluster_id, directory, certificate, key, (certificate,))


def open_authority(directory: Path) -> Authority:
    """`BadCertificate` when there is none, when others can read its key, or when key and certificates do not fit."""
    try:
        key = _key_in(directory)
        trusted = load_certificates(read_file(str(directory / CERTIFICATES)), directory / CERTIFICATES)
    except BadTls as refusal:
        raise BadCertificate(str(refusal)) from None
    signer = next((each for each in trusted if spki_of(each.public_key()) == spki_of(key.public_key())), None)
    if signer is None:
        raise BadCertificate(f"{directory / KEY} is the key of none of the certificates in {directory / CERTIFICATES}")
    role, cluster_id = _role_of(signer)
    return Authority(role, cluster_id, directory, signer, key, trusted)


def _key_in(directory: Path) -> ec.EllipticCurvePrivateKey:
    return load_key(read_private(str(directory / KEY)), directory / KEY)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def self_signed(
    key: ec.EllipticCurvePrivateKey, role: Role, cluster_id: str, *, generation: int, now: datetime
) -> x509.Certificate:
    subject = authority_subject(role.authority_name, cluster_id, generation)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def pem_of(certificates: tuple[x509.Certificate, ...]) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)


def spki_of(key: object) -> bytes:
    """A public key as bytes that can be compared."""
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined,no-any-return]  # every kind has it


def fingerprint_of(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def load_key(data: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError):
        raise BadCertificate(f"{path} is no private key in PEM, or is encrypted") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadCertificate(f"{path} is no key of an elliptic curve")
    return key


def load_certificates(data: bytes, path: Path) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise BadCertificate(f"{path} holds no certificates in PEM") from None


def _role_of(certificate: x509.Certificate) -> tuple[Role, str]:
    organization = certificate.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    common = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    for role in Role:
        if common and organization and str(common[0].value).startswith(role.authority_name):
            return role, str(organization[0].value)
    raise BadCertificate(f"{certificate.subject.rfc4514_string()} is no authority that was made here")
