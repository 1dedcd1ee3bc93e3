"""The name in a certificate as Java prints it, because ACLs and mapping rules are written for that text.

RFC 2253: the most specific part first, `,` between parts, `+` inside one. Attributes without a keyword are
`OID=#<hex of the DER value>`; `, = + < > # ; " \\` are escaped wherever they stand, blanks at either end.
"""

from __future__ import annotations

from typing import Final

from penstock.security.der import Attribute, Element, Name

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"

UTF8_STRING: Final = 0x0C
PRINTABLE_STRING: Final = 0x13
T61_STRING: Final = 0x14
IA5_STRING: Final = 0x16
GENERAL_STRING: Final = 0x1B
UNIVERSAL_STRING: Final = 0x1C
BMP_STRING: Final = 0x1E
_STRINGS: Final = frozenset((UTF8_STRING, PRINTABLE_STRING, T61_STRING, IA5_STRING, GENERAL_STRING, BMP_STRING))


def rfc2253(name: Name) -> str:
    """`CN=alice,OU=people,O=Example`."""
    return ",".join("+".join(map(_attribute, part)) for part in reversed(name))


def _attribute(attribute: Attribute) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or attribute.value.tag not in _STRINGS:
        return f"{keyword or attribute.oid}=#{attribute.value.whole.hex()}"
    return f"{keyword}={_escaped(_text(attribute.value))}"


def _text(value: Element) -> str:
    # Java reads the bytes of every kind of string as UTF-8, also of those that are encoded otherwise.
    return value.content.decode("utf-8", "replace")


def _escaped(text: str) -> str:
    middle = "".join("\\" + char if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    stripped = middle.strip(_BLANKS)
    if stripped == middle:
        return middle
    lead = len(middle) - len(middle.lstrip(_BLANKS))
    trail = len(middle) if not stripped else lead + len(stripped)
    return (
        "".join("\\" + char for char in middle[:lead])
        + middle[lead:trail]
        + "".join("\\" + char for char in middle[trail:])
    )
