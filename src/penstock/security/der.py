"""As much of DER as certificates and key stores need before anybody is trusted: lengths are checked before reading.

A peer's certificate comes from the TLS library as bytes (`getpeercert(binary_form=True)`), and Java's key stores wrap
their keys in DER; reading a name or a key's wrapping out of them needs no other library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.model.errors import PenstockError

SEQUENCE: Final = 0x30
SET: Final = 0x31
OCTET_STRING: Final = 0x04
OBJECT_ID: Final = 0x06
_VERSION: Final = 0xA0
_LENGTH_BYTES_MAX: Final = 4


class NotDer(PenstockError):
    """Bytes that are not what they should be."""


@dataclass(frozen=True, slots=True)
class Element:
    """`whole` is the element with its header, `content` without."""

    tag: int
    content: bytes
    whole: bytes


@dataclass(frozen=True, slots=True)
class Attribute:
    """One part of a name: which attribute, and its value as it is encoded."""

    oid: str
    value: Element


Name = tuple[tuple[Attribute, ...], ...]
"""Parts in the order of the certificate, the most general first; a part may have several attributes."""


def subject_of(certificate: bytes) -> Element:
    """The subject of a certificate, whose content is for `name_of`. NotDer when it is none."""
    parts = elements(expected(SEQUENCE, elements(certificate)).content)
    fields = list(elements(expected(SEQUENCE, parts).content))
    # The serial number, algorithm, issuer and validity come first, and before them a version since version 2.
    place = 4 + bool(fields and fields[0].tag == _VERSION)
    if len(fields) <= place:
        raise NotDer("a certificate without a subject")
    return _tagged(SEQUENCE, fields[place])


def name_of(content: bytes) -> Name:
    """The parts of a name, whose encoding is a sequence with this content."""
    return tuple(
        tuple(_attribute(attribute) for attribute in elements(_tagged(SET, part).content)) for part in elements(content)
    )


def elements(data: bytes) -> Iterator[Element]:
    """The elements that stand one after the other in `data`."""
    at = 0
    while at < len(data):
        begin, tag = at, data[at]
        if tag & 0x1F == 0x1F:
            raise NotDer("a tag of more than one byte")
        length, at = _length(data, at + 1)
        if at + length > len(data):
            raise NotDer("an element is longer than what holds it")
        yield Element(tag, data[at : at + length], data[begin : at + length])
        at += length


def expected(tag: int, found: Iterator[Element]) -> Element:
    """The next element, which has this tag."""
    return _tagged(tag, _next(found))


def oid_text(content: bytes) -> str:
    """`2.5.4.3`."""
    if not content or content[-1] & 0x80:
        raise NotDer("an object id that does not end")
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _attribute(element: Element) -> Attribute:
    parts = elements(_tagged(SEQUENCE, element).content)
    return Attribute(oid_text(expected(OBJECT_ID, parts).content), _next(parts))


def _length(data: bytes, at: int) -> tuple[int, int]:
    """The length that is written at `at`, and where the content begins."""
    if at >= len(data):
        raise NotDer("an element without a length")
    first = data[at]
    if first < 0x80:
        return first, at + 1
    size = first & 0x7F
    if not 1 <= size <= _LENGTH_BYTES_MAX or at + 1 + size > len(data):
        raise NotDer("a length that is not definite")
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size


def _tagged(tag: int, element: Element) -> Element:
    if element.tag != tag:
        raise NotDer(f"expected tag {tag:#x}, found {element.tag:#x}")
    return element


def _next(found: Iterator[Element]) -> Element:
    element = next(found, None)
    if element is None:
        raise NotDer("an element is missing")
    return element
