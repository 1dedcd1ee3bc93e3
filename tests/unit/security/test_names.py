"""Names of certificates, as Java prints them. The vectors were printed by Java's X500Principal."""

from __future__ import annotations

import contextlib
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.der import Attribute, Element, NotDer, elements, name_of, oid_text, subject_of
from penstock.security.names import UTF8_STRING, rfc2253

CN, ORGANIZATION, OU = "2.5.4.3", "2.5.4.10", "2.5.4.11"


def attribute(oid: str, text: str, tag: int = UTF8_STRING) -> Attribute:
    content = text.encode()
    return Attribute(oid, Element(tag, content, bytes((tag, len(content))) + content))


def printed(text: str) -> str:
    return rfc2253(((attribute(CN, text),),)).removeprefix("CN=")


def certificate(*attributes: x509.NameAttribute) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name, day = x509.Name(attributes), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + datetime.timedelta(days=1))
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def test_the_subject_of_a_certificate_is_printed_with_the_most_specific_part_first() -> None:
    der = certificate(
        x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example, Inc."),
        x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
        x509.NameAttribute(NameOID.COMMON_NAME, "alice\\b=c"),
    )
    mail = "1.2.840.113549.1.9.1=#16056140622e63"
    assert rfc2253(name_of(subject_of(der).content)) == f"CN=alice\\\\b\\=c,{mail},O=Example\\, Inc.,C=DE"


def test_a_part_with_several_attributes_keeps_their_order() -> None:
    name = ((attribute(ORGANIZATION, "y"),), (attribute(OU, "x"), attribute(CN, "Bob")))
    assert rfc2253(name) == "OU=x+CN=Bob,O=y"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ('a,b=c+d<e>f#g;h"i\\j', 'a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j'),
        (" lead and trail  ", "\\ lead and trail\\ \\ "),
        ("  ", "\\ \\ "),
        ("\r x\n", "\\\r\\ x\n"),
        ("a\0b", "a\\00b"),
        ("ünï €", "ünï €"),
        ("", ""),
    ],
)
def test_values_are_escaped_as_java_escapes_them(text: str, shown: str) -> None:
    assert printed(text) == shown


def test_what_is_no_string_is_hexadecimal() -> None:
    octets = Attribute(CN, Element(0x04, b"\xde\xad", b"\x04\x02\xde\xad"))
    assert rfc2253(((octets,),)) == "CN=#0402dead"


def test_no_name_is_empty() -> None:
    assert rfc2253(()) == ""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\x55\x04\x03", "2.5.4.3"),
        (b"\x88\x37\x01", "2.999.1"),
        (b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", "1.2.840.113549.1.9.1"),
    ],
)
def test_object_ids_have_dots(content: bytes, text: str) -> None:
    assert oid_text(content) == text


@given(st.binary(max_size=80))
def test_cve_2022_34917_lengths_are_believed_only_when_the_bytes_are_there(data: bytes) -> None:
    for read in (subject_of, name_of, lambda data: list(elements(data)), oid_text):
        with contextlib.suppress(NotDer):
            read(data)


@given(st.data())
def test_a_damaged_certificate_has_a_name_or_none(data: st.DataObject) -> None:
    der = bytearray(_CERTIFICATE)
    for _ in range(data.draw(st.integers(1, 3))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(NotDer):
        rfc2253(name_of(subject_of(bytes(der)).content))


_CERTIFICATE = certificate(x509.NameAttribute(NameOID.COMMON_NAME, "node-1"))
