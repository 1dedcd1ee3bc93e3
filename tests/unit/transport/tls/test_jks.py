"""Stores that keytool wrote are read; damaged ones are refused; none costs more than its bytes."""

from __future__ import annotations

import contextlib
import struct
from hashlib import sha1
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate
from hypothesis import given
from hypothesis import strategies as st

from penstock.transport.tls.jks import MAGIC, BadJks, HiddenKey, read_jks, unhide

STORES = Path(__file__).parent / "stores"
STORE_SECRET, KEY_SECRET = "store-secret", "key-secret"


def stored(body: bytes, password: str) -> bytes:
    """A store as the format wants it, around entries that are written by hand."""
    return body + sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def test_a_key_store_of_keytool_is_read() -> None:
    store = read_jks((STORES / "keys.jks").read_bytes(), STORE_SECRET)
    (entry,) = store.keys
    assert entry.alias == "node"
    certificate = (STORES / "node.der").read_bytes()
    assert entry.chain == (certificate,)
    key = load_der_private_key(unhide(entry.hidden, KEY_SECRET), None)
    assert key.public_key() == load_der_x509_certificate(certificate).public_key()
    assert store.trusted == ()


def test_a_trust_store_of_keytool_is_read_also_without_its_password() -> None:
    data = (STORES / "trust.jks").read_bytes()
    assert read_jks(data, STORE_SECRET) == read_jks(data, None)
    assert read_jks(data, None).trusted == ((STORES / "node.der").read_bytes(),)


def test_a_wrong_password_is_told_of_store_and_key() -> None:
    data = (STORES / "keys.jks").read_bytes()
    with pytest.raises(BadJks, match="password is wrong"):
        read_jks(data, "other")
    with pytest.raises(BadJks, match="password of the key"):
        unhide(read_jks(data, STORE_SECRET).keys[0].hidden, STORE_SECRET)


def test_a_hidden_key_has_no_repr() -> None:
    entry = HiddenKey("a", b"hidden-bytes", ())
    assert "hidden-bytes" not in repr(entry)


@pytest.mark.parametrize("at", range(0, 443, 7))
def test_one_changed_byte_anywhere_is_found_by_the_digest(at: int) -> None:
    data = bytearray((STORES / "trust.jks").read_bytes())
    data[at] ^= 1
    with pytest.raises(BadJks):
        read_jks(bytes(data), STORE_SECRET)


def test_a_store_of_version_1_names_no_types_of_certificates() -> None:
    certificate = (STORES / "node.der").read_bytes()
    entry = struct.pack(">IH", 2, 2) + b"ca" + bytes(8) + struct.pack(">I", len(certificate)) + certificate
    assert read_jks(stored(MAGIC + struct.pack(">II", 1, 1) + entry, "p"), "p").trusted == (certificate,)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (MAGIC + struct.pack(">II", 3, 0), "version 3"),
        (MAGIC + struct.pack(">II", 2, 1), "cut off"),
        (MAGIC + struct.pack(">II", 2, 0xFFFFFFFF), "cut off"),
        (MAGIC + struct.pack(">II", 2, 0) + b"x", "1 bytes too many"),
        (MAGIC + struct.pack(">IIIH", 2, 1, 7, 0) + bytes(8), "kind 7"),
        (MAGIC + struct.pack(">IIIH", 2, 1, 1, 0) + bytes(8) + struct.pack(">I", 1 << 31), "cut off"),
        (MAGIC + struct.pack(">IIIH", 2, 1, 2, 0) + bytes(8) + struct.pack(">H", 3) + b"PGP", "'PGP'"),
    ],
)
def test_what_is_no_store_is_refused_although_its_digest_is_right(body: bytes, word: str) -> None:
    with pytest.raises(BadJks, match=word):
        read_jks(stored(body, "p"), "p")


@given(st.binary(max_size=200))
def test_nonsense_with_a_right_digest_is_refused(body: bytes) -> None:
    with contextlib.suppress(BadJks):
        read_jks(stored(MAGIC + struct.pack(">I", 2) + body, "p"), "p")


@given(st.binary(max_size=120))
def test_a_hidden_key_that_is_none_is_refused(hidden: bytes) -> None:
    with pytest.raises(BadJks):
        unhide(hidden, "p")
