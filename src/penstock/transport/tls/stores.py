"""Key stores and trust stores: PEM files and texts, PKCS12, JKS. What they hold, whatever they are.

A store is read whole and parsed in memory; a key in the clear is never written anywhere. PEM trust stores, all that
most clients have, are read without `cryptography`, whose import takes longer than the handshake.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.security.der import NotDer, subject_of
from penstock.transport.tls.jks import MAGIC, BadJks, JksStore, read_jks, unhide
from penstock.transport.tls.settings import JKS, PEM, PKCS12, BadTls, StoreSettings, check_password

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

STORE_BYTES_MAX: Final = 4 << 20
"""Every root of the web is a tenth of this."""

_JCEKS: Final = b"\xce\xce\xce\xce"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.S)
_CERTIFICATE: Final = ("CERTIFICATE", "X509 CERTIFICATE")
_KEY: Final = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")

ReadFile = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A certificate with those that lead to its root, leaf first, and its key."""

    chain: tuple[bytes, ...]
    """DER."""
    key: bytes = field(repr=False)
    """PKCS#8 in DER, in the clear."""


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The certificates, in DER, whose word is believed."""

    anchors: tuple[bytes, ...]


def load_key_store(settings: StoreSettings, read: ReadFile | None = None) -> KeyStore | None:
    """None when none is given; `BadTls` when it cannot be used."""
    if not settings.given:
        return None
    where = settings.location or "ssl.keystore.key"
    if settings.inline:
        assert settings.certificates is not None, "the settings were checked"
        assert settings.key is not None, "the settings were checked"
        text = settings.certificates.reveal()
        return _pem_keys(text, settings.key.reveal(), _key_password(settings), where)
    assert settings.location is not None, "it is given, and not inline"
    apart = settings.key_location is not None  # the chain alone is no secret
    data = (read or (read_file if apart else read_private))(settings.location)
    kind = kind_of(settings, data)
    check_password(settings, kind)
    if kind == PEM:
        text, key_text = _text(data, where), None
        if settings.key_location is not None:
            key_text = _text((read or read_private)(settings.key_location), settings.key_location)
        return _pem_keys(text, key_text or text, _key_password(settings), where)
    if settings.key_location is not None:
        raise BadTls(f"{settings.location} is a {kind} store, which holds its key: {settings.key_location} must go")
    if kind == JKS:
        return _jks_keys(_opened_jks(settings, data), settings, where)
    return _pkcs12_keys(_opened_pkcs12(settings, data), where)


def load_trust_store(settings: StoreSettings, read: ReadFile | None = None) -> TrustStore | None:
    """None when none is given; `BadTls` when it cannot be used or trusts nobody."""
    if not settings.given:
        return None
    where = settings.location or "ssl.truststore.certificates"
    if settings.inline:
        assert settings.certificates is not None, "the settings were checked"
        anchors = tuple(_certificates(settings.certificates.reveal(), where))
    else:
        assert settings.location is not None, "it is given, and not inline"
        data = (read or read_file)(settings.location)
        kind = kind_of(settings, data)
        check_password(settings, kind)
        anchors = _anchors(settings, kind, data, where)
    if not anchors:
        raise BadTls(f"{where} holds no certificate to trust")
    return TrustStore(anchors)


def kind_of(settings: StoreSettings, data: bytes) -> str:
    """PEM, PKCS12 or JKS: what the content is, if that is not something else than what was said."""
    found = _guess(data)
    if found is None:
        raise BadTls(f"{settings.location} is no PEM, PKCS12 or JKS store")
    # Java takes PKCS12 and JKS for each other, so files in which the two are mixed up work and must go on working.
    if settings.type is not None and (settings.type == PEM) != (found == PEM):
        raise BadTls(f"{settings.prefix}.type is {settings.type}, but {settings.location} is {found}")
    return found


def _guess(data: bytes) -> str | None:
    if data.startswith(MAGIC):
        return JKS
    if data.startswith(_JCEKS):
        raise BadTls(
            "JCEKS stores cannot be read; convert it with keytool -importkeystore -srckeystore FILE "
            "-srcstoretype JCEKS -destkeystore FILE.p12 -deststoretype PKCS12"
        )
    # Tools write words about a certificate before it.
    if b"-----BEGIN " in data:
        return PEM
    return PKCS12 if data[:1] == b"\x30" else None


# Files.


def read_file(path: str) -> bytes:
    """A file of a bearable size."""
    return _read(path, private=False)


def read_private(path: str) -> bytes:
    """A file with a key in it: refused when others than its owner can read it.

    A group may read what belongs to root, which is how keys are given to services. The rule is PostgreSQL's.
    """
    return _read(path, private=True)


def _read(path: str, *, private: bool) -> bytes:
    try:
        # A pipe would wait for somebody who writes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise BadTls(f"{path} is no file")
            if private:
                _check_private(path, found)
            data = os.read(descriptor, STORE_BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    except OSError as cause:
        raise BadTls(f"{path}: {(cause.strerror or str(cause)).lower()}") from None
    if len(data) > STORE_BYTES_MAX:
        raise BadTls(f"{path} has more than {STORE_BYTES_MAX >> 20} MB; that is no store")
    return data


def _check_private(path: str, found: os.stat_result) -> None:
    allowed = 0o740 if found.st_uid == 0 else 0o700
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o777 & ~allowed:
        raise BadTls(f"{path} holds a private key, but its mode is {mode:04o}: others can get at it; chmod 600 {path}")


# PEM.


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadTls(f"{where} is no text, although a part of it looks like PEM") from None


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    for found in _BLOCK.finditer(text):
        yield found[1], found[2]


def _certificates(text: str, where: str) -> Iterator[bytes]:
    for label, body in _blocks(text):
        if label in _CERTIFICATE:
            yield _certificate(_decoded(body, where), where)


def _decoded(body: str, where: str) -> bytes:
    # A property that was written over several lines is one line with blanks.
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadTls(f"{where}: a PEM block is no base64") from None


def _certificate(der: bytes, where: str) -> bytes:
    try:
        subject_of(der)
    except NotDer as broken:
        raise BadTls(f"{where}: a certificate cannot be read: {broken}") from None
    return der


def _pem_keys(chain_text: str, key_text: str, password: str | None, where: str) -> KeyStore:
    chain = tuple(_certificates(chain_text, where))
    if not chain:
        raise BadTls(f"{where}: there is no certificate")
    found = [(label, body) for label, body in _blocks(key_text) if label in _KEY]
    if len(found) != 1:
        raise BadTls(f"{where}: there are {len(found)} private keys, and one is needed")
    return _matched(chain, _pem_key(*found[0], password, where), where)


def _pem_key(label: str, body: str, password: str | None, where: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key

    hidden = label == "ENCRYPTED PRIVATE KEY" or "ENCRYPTED" in body
    if hidden and password is None:
        raise BadTls(f"{where}: the key is encrypted, but ssl.key.password is not given")
    if not hidden and password is not None:
        raise BadTls(f"{where}: ssl.key.password is given, but the key is not encrypted")
    secret = None if password is None else password.encode()
    try:
        if ":" in body:  # OpenSSL's old way to encrypt, with a header that names the cipher
            return load_pem_private_key(f"-----BEGIN {label}-----{body}-----END {label}-----\n".encode(), secret)
        return load_der_private_key(_decoded(body, where), secret)
    except BadTls:
        raise
    except Exception as broken:  # the library has several words for a wrong password and for nonsense
        raise BadTls(f"{where}: the key cannot be read: {_words(broken, hidden=hidden)}") from None


# PKCS12 and JKS.


def _opened_pkcs12(settings: StoreSettings, data: bytes) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    password = None if settings.password is None else settings.password.reveal().encode()
    try:
        return load_pkcs12(data, password)
    except Exception as broken:  # as above
        raise BadTls(f"{settings.location}: {_words(broken, hidden=True)}") from None


def _pkcs12_keys(store: PKCS12KeyAndCertificates, where: str) -> KeyStore:
    if store.key is None or store.cert is None:
        raise BadTls(f"{where} holds no private key with its certificate")
    return _matched(
        _in_order(store.cert.certificate, [each.certificate for each in store.additional_certs]), store.key, where
    )


def _in_order(leaf: Certificate, others: list[Certificate]) -> tuple[bytes, ...]:
    """The leaf, who issued it, who issued that; whatever else is in the store is none of the peer's business."""
    chain = [leaf]
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return tuple(map(_der, chain))


def _opened_jks(settings: StoreSettings, data: bytes) -> JksStore:
    try:
        return read_jks(data, None if settings.password is None else settings.password.reveal())
    except BadJks as broken:
        raise BadTls(f"{settings.location}: {broken}") from None


def _jks_keys(store: JksStore, settings: StoreSettings, where: str) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    if len(store.keys) != 1:
        raise BadTls(
            f"{where} holds {len(store.keys) or 'no'} private keys; one is needed, or it is not clear which to show"
        )
    assert settings.password is not None, "the settings were checked"
    entry, password = store.keys[0], _key_password(settings) or settings.password.reveal()
    if not entry.chain:
        raise BadTls(f"{where}: the key has no certificate")
    try:
        key: Any = load_der_private_key(unhide(entry.hidden, password), None)
    except Exception as broken:  # as above
        raise BadTls(f"{where}: the key cannot be read: {_words(broken, hidden=True)}") from None
    return _matched(tuple(_certificate(each, where) for each in entry.chain), key, where)


def _anchors(settings: StoreSettings, kind: str, data: bytes, where: str) -> tuple[bytes, ...]:
    if kind == PEM:
        return tuple(_certificates(_text(data, where), where))
    if kind == JKS:
        jks = _opened_jks(settings, data)
        # As in Java: who has a key here vouches for its own certificate, not for those above it.
        return tuple(
            _certificate(each, where) for each in (*jks.trusted, *(key.chain[0] for key in jks.keys if key.chain))
        )
    store = _opened_pkcs12(settings, data)
    if store.cert is not None:
        return (_der(store.cert.certificate),)
    return tuple(_der(each.certificate) for each in store.additional_certs)


# What all kinds have in common.


def _matched(chain: tuple[bytes, ...], key: Any, where: str) -> KeyStore:
    """The store, if the key is the first certificate's own."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.x509 import load_der_x509_certificate

    try:
        leaf = load_der_x509_certificate(chain[0]).public_key()
    except Exception as broken:  # as above
        raise BadTls(f"{where}: its certificate cannot be read: {_words(broken, hidden=False)}") from None
    spki = (form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    if leaf.public_bytes(*spki) != key.public_key().public_bytes(*spki):
        raise BadTls(f"{where}: the key is not the key of the first certificate")
    return KeyStore(chain, key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()))


def _key_password(settings: StoreSettings) -> str | None:
    return None if settings.key_password is None else settings.key_password.reveal()


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _words(broken: Exception, *, hidden: bool) -> str:
    """Why something could not be read. Libraries' own words may quote what they read, so they are not repeated."""
    if isinstance(broken, BadJks):
        return str(broken)
    return "the password is wrong, or it is damaged" if hidden else "it is damaged, or of an unknown kind"
