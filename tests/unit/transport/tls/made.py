"""Certificates that no authority would make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID


def self_signed(
    key: Any,
    *,
    common_name: str = "self",
    hosts: tuple[str, ...] = (),
    began: timedelta = timedelta(days=-1),
    ends: timedelta = timedelta(days=1),
    issuer: tuple[x509.Certificate, Any] | None = None,
    is_authority: bool = False,
) -> str:
    """PEM text of a certificate for `key`, signed by itself or by (certificate, key) of somebody else."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    signer = key if issuer is None else issuer[1]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + began)
        .not_valid_after(now + ends)
    )
    if hosts:
        names = [x509.DNSName(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if is_authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(signer, algorithm).public_bytes(Encoding.PEM).decode()
