"""New records as they come over HTTP: ours, lines of them, and those of Confluent's REST proxy, version 3. Pure.

A value that is JSON is stored as the very text that was sent, so its numbers stay what they are.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from penstock.console.failures import bad_request

RECORDS_MAX: Final = 1_000
_KINDS: Final = frozenset({"BINARY", "JSON", "STRING"})
_NAMES: Final = frozenset(
    {"key", "value", "key_base64", "value_base64", "headers", "partition", "partition_id", "timestamp"}
)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to send; None where the sender leaves it to us, and for a null key or value."""

    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int | None = None
    timestamp: int | None = None


def records_of(body: bytes, *, lines: bool) -> list[NewRecord]:
    """One record, a list, an object with a list of `records`, or one on each line."""
    try:
        if lines:
            raws = [msgspec.Raw(line) for line in body.splitlines() if line.strip()]
        elif body.lstrip()[:1] == b"[":
            raws = _LIST.decode(body)
        else:
            whole = _OBJECT.decode(body)
            raws = _LIST.decode(whole["records"]) if "records" in whole else [msgspec.Raw(body)]
        if not raws:
            raise bad_request("there is no record in the body")
        if len(raws) > RECORDS_MAX:
            raise bad_request(f"{len(raws)} records in one request; at most {RECORDS_MAX}")
        return [_record(number, _OBJECT.decode(raw)) for number, raw in enumerate(raws, 1)]
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise bad_request(f"the body is no JSON record: {wrong}", 'as in {"key": "k", "value": {"a": 1}}') from None


def _record(number: int, given: dict[str, msgspec.Raw]) -> NewRecord:
    unknown = sorted(given.keys() - _NAMES)
    if unknown:
        raise bad_request(
            f"record {number}: {unknown[0]!r} is no part of a record; there are {', '.join(sorted(_NAMES))}"
        )
    try:
        key, typed_key = _side(given, "key")
        value, typed_value = _side(given, "value")
        headers = _headers(given.get("headers"), coded=typed_key or typed_value)
        partition = _whole(given.get("partition", given.get("partition_id")), (1 << 31) - 1)
        return NewRecord(key, value, headers, partition, _whole(given.get("timestamp"), (1 << 63) - 1))
    except (ValueError, binascii.Error, msgspec.DecodeError) as wrong:
        raise bad_request(f"record {number}: {wrong}") from None


def _side(given: dict[str, msgspec.Raw], name: str) -> tuple[bytes | None, bool]:
    """A key or a value, and whether it came with its type, as in `{"type": "JSON", "data": ...}`."""
    coded = given.get(f"{name}_base64")
    if coded is not None:
        if name in given:
            raise ValueError(f"{name} and {name}_base64 exclude each other")
        return _from_base64(msgspec.json.decode(coded, type=str), f"{name}_base64"), False
    raw = given.get(name)
    if raw is None:
        return None, False
    if bytes(raw).lstrip()[:1] == b"{":
        inside = _OBJECT.decode(raw)
        if inside.keys() <= {"type", "data"} and "type" in inside:
            kind = msgspec.json.decode(inside["type"])
            if kind in _KINDS:
                return _typed(kind, inside.get("data"), name), True
    return _plain(raw), False


def _typed(kind: str, data: msgspec.Raw | None, name: str) -> bytes | None:
    if data is None or bytes(data).strip() == b"null":
        return None
    if kind == "JSON":
        return bytes(data).strip()
    text = msgspec.json.decode(data, type=str)
    return _from_base64(text, name) if kind == "BINARY" else text.encode()


def _plain(raw: msgspec.Raw) -> bytes | None:
    """Text as it is, null as null, anything else as the JSON that it is."""
    data = bytes(raw).strip()
    if data == b"null":
        return None
    msgspec.json.decode(data)
    return str(msgspec.json.decode(data)).encode() if data[:1] == b'"' else data


def _from_base64(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name} is not base64") from None


def _headers(raw: msgspec.Raw | None, *, coded: bool) -> list[tuple[str, bytes | None]]:
    """A list of names and values, or an object. Values of typed records are in base64, as version 3 has them."""
    if raw is None:
        return []
    given: Any = msgspec.json.decode(raw)
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise ValueError("headers are a list of objects with name and value")
    return [_header(each, coded=coded) for each in given]


def _header(given: Any, *, coded: bool) -> tuple[str, bytes | None]:
    name = given.get("name", given.get("key")) if isinstance(given, dict) else None
    if not isinstance(name, str):
        raise ValueError("a header is an object with name and value")
    value = given.get("value")
    if given.get("value_base64") is not None:
        return name, _from_base64(str(given["value_base64"]), f"header {name}")
    if value is None:
        return name, None
    if not isinstance(value, str):
        raise ValueError(f"the value of header {name!r} is no text")
    return name, _from_base64(value, f"header {name}") if coded else value.encode()


def _whole(raw: msgspec.Raw | None, most: int) -> int | None:
    if raw is None:
        return None
    number = msgspec.json.decode(raw)
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 20:
        number = int(number)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most:
        raise ValueError(f"{bytes(raw).decode()} is no whole number from 0 to {most}")
    return number
