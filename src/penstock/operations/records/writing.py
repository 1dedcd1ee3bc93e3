"""Records to bytes by a format: the printing half of `-f`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Protocol

from penstock.operations.records.layout import BadFormat, Field, Layout, Literal
from penstock.operations.records.numbers import write_number
from penstock.operations.records.stored import Stored
from penstock.operations.records.times import go_time, strftime
from penstock.operations.records.unpacking import LETTERS, unpack_text


class Printable(Stored, Protocol):
    """What a record has to have; the consumer's records do."""

    @property
    def leader_epoch(self) -> int: ...


Piece = Callable[[Printable, int], bytes]
_Text = Callable[[bytes], bytes]


def compile_writer(layout: Layout) -> Piece:
    """A function from a record, and how many came before and with it, to its bytes."""
    pieces = [_piece(part) for part in layout]
    return lambda record, count: b"".join([piece(record, count) for piece in pieces])


def _piece(part: Literal | Field) -> Piece:
    if isinstance(part, Literal):
        data = part.data
        return lambda _record, _count: data
    match part.verb:
        case "h":
            return _headers(part)
        case "t" | "k" | "v":
            render, text = _text(part), _TEXTS[part.verb]
            return lambda record, _count: render(text(record))
        case "d" if part.style in ("go", "strftime"):
            write, layout = (go_time if part.style == "go" else strftime), part.argument
            return lambda record, _count: write(record.timestamp, layout).encode()
        case _:
            style = (part.style.partition(";")[2] if part.verb == "a" else part.style) or "ascii"
            if style.isdigit():
                raise BadFormat(f"{part}{{{style}}} is for reading; printing a length needs no size")
            number = _NUMBERS[part.verb]
            return lambda record, count: write_number(number(record, count), style)


def _headers(part: Field) -> Piece:
    """A header is printed as if it were a record with nothing but a key and a value."""
    pieces: list[Callable[[bytes, bytes], bytes]] = [_header_piece(inner) for inner in part.inner]

    def write(record: Printable, _count: int) -> bytes:
        return b"".join([piece(name.encode(), value or b"") for name, value in record.headers for piece in pieces])

    return write


def _header_piece(part: Literal | Field) -> Callable[[bytes, bytes], bytes]:
    if isinstance(part, Literal):
        data = part.data
        return lambda _key, _value: data
    of_key = part.verb in "kK"
    if part.verb in "KV":
        style = part.style or "ascii"
        if style.isdigit():
            raise BadFormat(f"{part}{{{style}}} is for reading; printing a length needs no size")
        return lambda key, value: write_number(len(key if of_key else value), style)
    render = _text(part)
    return lambda key, value: render(key if of_key else value)


def _text(part: Field) -> _Text:
    match part.style:
        case "":
            return bytes
        case "hex":
            return lambda data: data.hex().encode()
        case "base64":
            return base64.b64encode
        case "base64raw":
            return lambda data: base64.b64encode(data).rstrip(b"=")
        case "unpack":
            letters = part.argument
            strange = next((letter for letter in letters if letter not in LETTERS), None)
            if strange is not None:
                raise BadFormat(f"{strange!r} is no letter of unpack; there are {' '.join(LETTERS)}")
            return lambda data: unpack_text(data, letters)
        case _:
            raise BadFormat(f"{{{part.style}}} of {part} is for reading only")


_TEXTS: dict[str, Callable[[Printable], bytes]] = {
    "t": lambda record: record.topic.encode(),
    "k": lambda record: record.key or b"",
    "v": lambda record: record.value or b"",
}
_NUMBERS: dict[str, Callable[[Printable, int], int]] = {
    "T": lambda record, _count: len(record.topic.encode()),
    "K": lambda record, _count: len(record.key or b""),
    "V": lambda record, _count: len(record.value or b""),
    "H": lambda record, _count: len(record.headers),
    "p": lambda record, _count: record.partition,
    "o": lambda record, _count: record.offset,
    "e": lambda record, _count: record.leader_epoch,
    "d": lambda record, _count: record.timestamp,
    "a": lambda record, _count: record.timestamp_type,
    "i": lambda _record, count: count,
}
