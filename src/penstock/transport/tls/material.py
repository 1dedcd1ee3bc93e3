"""Stores as they are on disk at this moment, what they say of their owner, and how their files looked then."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC

from penstock.security.der import subject_of
from penstock.transport.tls.reload import Identity, Material, Stamp, Stamps
from penstock.transport.tls.settings import BadTls, TlsSettings
from penstock.transport.tls.stores import load_key_store, load_trust_store


def load_material(settings: TlsSettings) -> Material:
    """Reads both stores. `BadTls` when one of them cannot be used."""
    key_store = load_key_store(settings.key_store)
    trust_store = load_trust_store(settings.trust_store)
    return Material(key_store, trust_store, None if key_store is None else identity_of(key_store.chain[0]))


def identity_of(certificate: bytes) -> Identity:
    """Of a certificate in DER."""
    from cryptography import x509

    try:
        parsed = x509.load_der_x509_certificate(certificate)
        try:
            names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            told = frozenset(map(_told, names))
        except x509.ExtensionNotFound:
            told = frozenset()
    except ValueError:
        raise BadTls("a certificate cannot be read") from None
    not_after_ms = int(parsed.not_valid_after_utc.astimezone(UTC).timestamp() * 1000)
    return Identity(subject_of(certificate).whole, told, not_after_ms)


def _told(name: object) -> str:
    from cryptography import x509

    match name:
        case x509.DNSName():
            return f"DNS:{name.value.lower()}"
        case x509.IPAddress():
            return f"IP:{name.value}"
        case x509.UniformResourceIdentifier():
            return f"URI:{name.value}"
        case x509.RFC822Name():
            return f"email:{name.value}"
    return repr(name)


def stamps_of(paths: Iterable[str]) -> Stamps:
    """How the files look now. Taken before they are read, so that a change meanwhile is seen at the next look."""
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
