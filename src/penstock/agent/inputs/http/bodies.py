"""Events out of request bodies. Pure: a whole body in, all of its events out, or a refusal that says what is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from penstock.conditions.paths import Fields

BodyFormat = Literal["json", "ndjson", "raw", "lines"]

VALUES_MAX: Final = 1_000_000
"""JSON values in one body: each costs far more in memory than the two bytes that it may take on the wire."""

_BY_CONTENT_TYPE: Final[dict[str, BodyFormat]] = {
    "application/json": "json",
    "text/json": "json",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/x-jsonlines": "ndjson",
    "application/json-lines": "ndjson",
    "application/octet-stream": "raw",
}
_BYTE: Final = re.compile(r" \(byte (\d+)\)$")
_NOT_JSON: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_decode_fields = msgspec.json.Decoder(Fields).decode
_decode_parts = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Refused(Exception):
    """The body is not taken. `status` is what the sender is told besides the words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


@dataclass(slots=True)
class Events:
    """`fields` is None for what is raw. `cut` has the indexes of lines that lost their end."""

    values: list[bytes]
    fields: list[Fields] | None
    cut: list[int]


def format_of(content_type: str) -> BodyFormat | None:
    """By the content type, None when it is not known. Without one the body is one event as it is."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if not kind:
        return "raw"
    if kind in _BY_CONTENT_TYPE:
        return _BY_CONTENT_TYPE[kind]
    if kind.startswith("text/"):
        return "lines"
    return "json" if kind.endswith("+json") else None


def read_body(body: bytes, format: BodyFormat, line_bytes_max: int) -> Events:
    """Raises Refused."""
    match format:
        case "raw":
            if not body:
                raise Refused(400, "the body is empty")
            return Events([body], None, [])
        case "lines":
            return _read_lines(body, line_bytes_max)
        case "ndjson":
            return _read_ndjson(body)
        case "json":
            return _read_json(body)


def _read_lines(body: bytes, line_bytes_max: int) -> Events:
    if body.count(b"\n") > VALUES_MAX:
        raise Refused(413, f"one request may have {VALUES_MAX} lines; send fewer at a time")
    lines = [line for line in map(_without_return, body.split(b"\n")) if line]
    cut = [at for at, line in enumerate(lines) if len(line) > line_bytes_max]
    for at in cut:
        lines[at] = lines[at][:line_bytes_max]
    return Events(lines, None, cut)


def _read_ndjson(body: bytes) -> Events:
    _weigh(body)
    values: list[bytes] = []
    fields: list[Fields] = []
    for number, line in enumerate(body.split(b"\n"), 1):
        value = _without_return(line)
        if value.strip():
            try:
                fields.append(_decode_fields(value))
            except _NOT_JSON as wrong:
                at, words = _what(wrong, len(value))
                raise Refused(
                    400, f"line {number}, column {at + 1}: {words}; nothing of the request was taken"
                ) from None
            values.append(value)
    return Events(values, fields, [])


def _read_json(body: bytes) -> Events:
    """An object, or an array of objects."""
    _weigh(body)
    begin = len(body) - len(body.lstrip())
    values: list[bytes] = []
    fields: list[Fields] = []
    try:
        if not body.startswith(b"[", begin):
            return Events([body.strip()], [_decode_fields(body)], [])
        values = [bytes(part) for part in _decode_parts(body)]
        for value in values:
            fields.append(_decode_fields(value))  # noqa: PERF401 # how many there are says which one is wrong
    except _NOT_JSON as wrong:
        at, words = _what(wrong, len(body))
        where = f"event {len(fields) + 1}" if values else _place(body, at)
        raise Refused(400, f"{where}: {words}; nothing of the request was taken") from None
    return Events(values, fields, [])


def _weigh(body: bytes) -> None:
    """An upper bound of the values in it that costs next to nothing."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") + body.count(b"\n") > VALUES_MAX:
        raise Refused(413, f"one request may have {VALUES_MAX} JSON values; send fewer events at a time")


def _what(wrong: Exception, size: int) -> tuple[int, str]:
    """Where, as far as it is known, and what. What ends too soon is wrong at its end."""
    if isinstance(wrong, RecursionError):
        return 0, "it is nested too deeply"
    if isinstance(wrong, msgspec.ValidationError):
        return 0, 'an event must be a JSON object such as {"message": "…"}'
    words = str(wrong)
    found = _BYTE.search(words)
    if found is None:
        return size if "truncated" in words else 0, f"this is not JSON: {words}"
    return int(found[1]), f"this is not JSON: {words[: found.start()]}"


def _place(body: bytes, at: int) -> str:
    line_start = body.rfind(b"\n", 0, at) + 1
    line_number = body.count(b"\n", 0, at) + 1
    return f"line {line_number}, column {at - line_start + 1}"


def _without_return(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") else line
