r"""What `-f '%k %v\n'` means: a format is taken apart into literal bytes and fields, once, for both directions.

    %t topic   %k key   %v value   %h{…} each header, with %k and %v inside   %T %K %V their lengths, %H how many
    %p partition   %o offset   %e leader epoch   %d timestamp   %i how many so far   %a{timestamp-type}
    %% %{ %} themselves; \t \n \r \\ \xNN

A field may carry a modifier in braces. Numbers: ascii hex64 … hex4 hex big64 … big8 little64 … little8 byte bool.
Text: hex base64 base64raw unpack[…]; when reading also json, re[…]. Times: go##2006-01-02## strftime[%F]. What stands
between brackets may be wrapped in any number of [ ], { } or #, so that it can hold them itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.operations.records.numbers import STYLES

TEXT, SIZES, NUMBERS = "tkv", "TKVH", "poei"
_ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "\\": b"\\"}
_CLOSE = {"[": "]", "{": "}", "#": "#"}
_MODIFIER = re.compile(r"[a-z0-9;-]*")
_ELSEWHERE = {
    "x": "the producer's id", "y": "the producer's epoch", "[": "the log start", "|": "the last stable offset",
    "]": "the high watermark",
}  # fmt: skip


class BadFormat(ValueError):
    """The format makes no sense; the message says where."""


@dataclass(frozen=True, slots=True)
class Literal:
    data: bytes


@dataclass(frozen=True, slots=True)
class Field:
    """`%verb{style argument}`; `inner` is the format of a header."""

    verb: str
    style: str = ""
    argument: str = ""
    inner: tuple[Literal | Field, ...] = ()

    def __str__(self) -> str:
        return f"%{self.verb}"


Layout = tuple[Literal | Field, ...]


def parse_layout(text: str) -> Layout:
    layout, end = _parse(text, 0, nested=False)
    assert end == len(text), "only a nested format ends early"
    return layout


def _parse(text: str, at: int, *, nested: bool) -> tuple[Layout, int]:
    parts: list[Literal | Field] = []
    literal = bytearray()

    def close_literal() -> None:
        if literal:
            parts.append(Literal(bytes(literal)))
            literal.clear()

    while at < len(text):
        char = text[at]
        if nested and char == "}":
            close_literal()
            return tuple(parts), at
        if char == "\\":
            data, at = _escape(text, at)
            literal += data
        elif char == "%":
            verb = text[at + 1 : at + 2]
            if verb in ("%", "{", "}"):
                literal += verb.encode()
                at += 2
            else:
                close_literal()
                field, at = _field(text, at + 1, nested=nested)
                parts.append(field)
        else:
            literal += char.encode("utf-8", "surrogateescape")
            at += 1
    if nested:
        raise BadFormat("%h{ is never closed")
    close_literal()
    return tuple(parts), at


def _escape(text: str, at: int) -> tuple[bytes, int]:
    letter = text[at + 1 : at + 2]
    if letter in _ESCAPES:
        return _ESCAPES[letter], at + 2
    digits = text[at + 2 : at + 4]
    if letter == "x" and re.fullmatch(r"[0-9a-fA-F]{2}", digits):
        return bytes.fromhex(digits), at + 4
    raise BadFormat(f"{text[at : at + 4]!r} at {at} is no escape: there are \\t \\n \\r \\\\ \\xNN")


def _field(text: str, at: int, *, nested: bool) -> tuple[Field, int]:
    verb = text[at : at + 1]
    if verb in _ELSEWHERE:
        raise BadFormat(f"%{verb} ({_ELSEWHERE[verb]}) is not known to a reader of records")
    allowed = "kvKV" if nested else TEXT + SIZES + NUMBERS + "dah"
    if not verb or verb not in allowed:
        where = "in a header, %" if nested else "%"
        raise BadFormat(f"{where}{verb} at {at - 1} means nothing; there are %{' %'.join(allowed)} and %% %{{ %}}")
    at += 1
    if text[at : at + 1] != "{":
        if verb in "ha":
            raise BadFormat(f"%{verb} needs braces, as in {'%h{%k=%v }' if verb == 'h' else '%a{timestamp-type}'}")
        return Field(verb), at
    if verb == "h":
        inner, at = _parse(text, at + 1, nested=True)
        return Field("h", inner=inner), at + 1
    return _modified(verb, text, at + 1)


def _modified(verb: str, text: str, at: int) -> tuple[Field, int]:
    """The rest of a field from within its braces."""
    found = _MODIFIER.match(text, at)
    assert found is not None, "the pattern matches nothing too"
    style, at = found[0], found.end()
    argument = ""
    if text[at : at + 1] in _CLOSE and text[at : at + 1]:
        argument, at = _wrapped(verb, text, at)
    if text[at : at + 1] != "}":
        raise BadFormat(f"the braces of %{verb} are never closed")
    field = Field(verb, style, argument)
    _check(field)
    return field, at + 1


def _wrapped(verb: str, text: str, at: int) -> tuple[str, int]:
    """What stands between a run of one opening character and the same run of its partner."""
    opening = text[at]
    run = len(text[at:]) - len(text[at:].lstrip(opening))
    begin = at + run
    end = text.find(_CLOSE[opening] * run + "}", begin)
    if end < 0:
        raise BadFormat(f"the {opening * run} of %{verb} is never closed")
    return text[begin:end], end + run


def _check(field: Field) -> None:
    style = field.style
    if field.verb in SIZES + NUMBERS:
        good = style in STYLES or (field.verb in SIZES and style.isdigit())
    elif field.verb == "d":
        good = style in STYLES or style in ("go", "strftime")
    elif field.verb == "a":
        attribute, _, number = style.partition(";")
        good = attribute == "timestamp-type" and (not number or number in STYLES)
    else:
        good = style in ("hex", "base64", "base64raw", "json", "unpack", "re")
    if not good:
        raise BadFormat(f"{{{style}}} is no modifier of {field}")
    if bool(field.argument) != (style in ("go", "strftime", "unpack", "re")):
        needs = f"needs an argument, as in {{{style}[…]}}" if not field.argument else "takes no argument"
        raise BadFormat(f"{{{style}}} of {field} {needs}")
