"""Java's old key store format, JKS: read only, in full, and with its digest checked.

A file is magic, version, a number of entries, the entries, and a SHA-1 over the password and all of that. A key is
hidden by XOR with a chain of SHA-1s that begins with a salt, and followed by a check of its own. Neither is more than
a curtain: whoever can read the file can try passwords as fast as SHA-1 goes. New stores should be PKCS12 or PEM.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha1

from penstock.security.der import OBJECT_ID, OCTET_STRING, SEQUENCE, NotDer, elements, expected, oid_text

MAGIC = b"\xfe\xed\xfe\xed"
SUN_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"

_DIGEST_BYTES = 20
_WHITENER = b"Mighty Aphrodite"
_KEY, _TRUSTED = 1, 2


class BadJks(ValueError):
    """The file is no JKS store, is damaged, or the password is not its own."""


@dataclass(frozen=True, slots=True)
class HiddenKey:
    """A key entry: the key under its password, and its certificates, leaf first."""

    alias: str
    hidden: bytes = field(repr=False)
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JksStore:
    keys: tuple[HiddenKey, ...]
    trusted: tuple[bytes, ...]


class _Cursor:
    """A place in the file. Lengths that it tells are compared with what is left before anything is made of them."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise BadJks("it is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        # Java's own UTF-8 differs for characters that no alias needs.
        return self.take(self.number(2)).decode("utf-8", "replace")


def read_jks(data: bytes, password: str | None) -> JksStore:
    """What a store holds. Without a password its digest is not looked at, as Java does with trust stores."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _DIGEST_BYTES:
        raise BadJks("it is no JKS store")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None and not hmac.compare_digest(sha1(_wide(password) + _WHITENER + body).digest(), digest):
        raise BadJks("the password is wrong, or the file is damaged")
    cursor = _Cursor(body)
    cursor.take(len(MAGIC))
    version = cursor.number()
    if version not in (1, 2):
        raise BadJks(f"it has version {version}")
    keys: list[HiddenKey] = []
    trusted: list[bytes] = []
    for _ in range(cursor.number()):
        kind, alias = cursor.number(), cursor.text()
        cursor.take(8)  # when it was made
        if kind == _KEY:
            hidden = cursor.take(cursor.number())
            keys.append(HiddenKey(alias, hidden, tuple(_certificate(cursor, version) for _ in range(cursor.number()))))
        elif kind == _TRUSTED:
            trusted.append(_certificate(cursor, version))
        else:
            raise BadJks(f"an entry of kind {kind}")
    if cursor.left:
        raise BadJks(f"{cursor.left} bytes too many")
    return JksStore(tuple(keys), tuple(trusted))


def unhide(hidden: bytes, password: str) -> bytes:
    """The key, as PKCS#8 in DER."""
    try:
        parts = elements(expected(SEQUENCE, elements(hidden)).content)
        algorithm = elements(expected(SEQUENCE, parts).content)
        name = oid_text(expected(OBJECT_ID, algorithm).content)
        content = expected(OCTET_STRING, parts).content
    except NotDer as broken:
        raise BadJks(f"its key is no hidden key: {broken}") from None
    if name != SUN_KEY_PROTECTOR:
        raise BadJks(f"its key is hidden by {name}")
    if len(content) <= 2 * _DIGEST_BYTES:
        raise BadJks("its key is cut off")
    salt, masked, check = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    key = _unmasked(masked, salt, _wide(password))
    if not hmac.compare_digest(sha1(_wide(password) + key).digest(), check):
        raise BadJks("the password of the key is wrong")
    return key


def _unmasked(masked: bytes, salt: bytes, wide: bytes) -> bytes:
    stream = bytearray()
    link = salt
    while len(stream) < len(masked):
        link = sha1(wide + link).digest()
        stream += link
    number = int.from_bytes(masked, "big") ^ int.from_bytes(stream[: len(masked)], "big")
    return number.to_bytes(len(masked), "big")


def _certificate(cursor: _Cursor, version: int) -> bytes:
    if version == 2:
        kind = cursor.text()
        if kind != "X.509":
            raise BadJks(f"a certificate of type {kind!r}")
    return cursor.take(cursor.number())


def _wide(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")
