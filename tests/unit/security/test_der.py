"""Subjects are found in certificates of others, and nonsense is refused in one word."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.der import SEQUENCE, NotDer, elements, expected, name_of, oid_text, subject_of
from tests.unit.transport.tls.world import certificate_of, der_of, leaf


def content_of(name: x509.Name) -> bytes:
    return expected(SEQUENCE, elements(name.public_bytes())).content


def test_the_subject_is_the_one_that_others_find() -> None:
    certificate = certificate_of(leaf(common_name="broker"))
    assert subject_of(der_of(leaf(common_name="broker"))).whole == certificate.subject.public_bytes()


def test_the_parts_of_a_name_keep_their_order_their_kind_and_their_bytes() -> None:
    name = x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Größe, & Co")]),
            x509.RelativeDistinguishedName(
                [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
            ),
            x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b")]),
        ]
    )
    parts = name_of(content_of(name))
    told = [{(each.oid, each.value.content.decode()) for each in part} for part in parts]
    assert told == [
        {("2.5.4.10", "Größe, & Co")},
        {("2.5.4.3", "a"), ("0.9.2342.19200300.100.1.1", "b")},
        {("1.2.840.113549.1.9.1", "a@b")},
    ]
    assert [part[0].value.tag for part in parts] == [0x0C, 0x0C, 0x16]


def test_an_old_certificate_without_a_version_has_its_subject_one_place_earlier() -> None:
    """Version 1 has no version field; the builder makes none of those, so the field is cut out here."""
    der = der_of(leaf())
    version = bytes.fromhex("a003020102")
    at = der.index(version)
    without = der[:at] + der[at + len(version) :]
    outer, inner = int.from_bytes(without[2:4], "big") - 5, int.from_bytes(without[6:8], "big") - 5
    assert without[1] == without[5] == 0x82
    without = without[:2] + outer.to_bytes(2, "big") + without[4:6] + inner.to_bytes(2, "big") + without[8:]
    assert subject_of(without).whole == certificate_of(leaf()).subject.public_bytes()


@pytest.mark.parametrize(
    "oid", ["2.5.4.3", "1.3.6.1.4.1.42.2.17.1.1", "2.999.1", "0.9.2342.19200300.100.1.25", "1.39.0"]
)
def test_identifiers_read_as_they_are_written(oid: str) -> None:
    name = x509.Name([x509.NameAttribute(x509.ObjectIdentifier(oid), "x")])
    assert name_of(content_of(name))[0][0].oid == oid


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x55\x84"])
def test_an_identifier_that_is_cut_off_is_none(content: bytes) -> None:
    with pytest.raises(NotDer):
        oid_text(content)


@given(st.binary(max_size=64))
def test_nonsense_is_refused(data: bytes) -> None:
    for reader in (subject_of, name_of):
        with contextlib.suppress(NotDer):
            reader(data)


@given(st.data())
def test_a_damaged_certificate_has_a_subject_or_is_refused(data: st.DataObject) -> None:
    der = bytearray(der_of(leaf()))
    for _ in range(data.draw(st.integers(1, 4))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(NotDer):
        name_of(subject_of(bytes(der[: data.draw(st.integers(0, len(der)))])).content)


def test_a_self_made_certificate_of_any_curve_is_read() -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x" * 60)])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1)).sign(
        key, hashes.SHA384()
    )
    assert subject_of(made.public_bytes(Encoding.DER)).whole == name.public_bytes()
