"""New records as they come over HTTP: one, a list of them, or one on each line. Pure.

A value that is JSON is stored as the very text that was sent, so its numbers stay what they are; text is stored as what
it says, null as null. Bytes come as `key_base64` and `value_base64`. One record, and an object of `records`, may be in
another form, which is tried first; a list and lines are nothing else than they say.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from penstock.console.digits import INT32_MAX, INT64_MAX, whole
from penstock.console.failures import bad_request

RECORDS_MAX: Final = 1_000
SIDES: Final = frozenset({"key", "value", "key_base64", "value_base64", "headers"})
_NAMES: Final = SIDES | {"partition", "timestamp"}
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


OtherForm = Callable[[Mapping[str, msgspec.Raw]], NewRecord | None]
"""Reads a record that is in a form of its own; None for one that is not, ValueError for one that is and is wrong."""


def records_of(body: bytes, *, lines: bool, other: OtherForm | None = None) -> list[NewRecord]:
    """One record, a list, an object with nothing but a list of `records`, or one on each line."""
    form: OtherForm = _none
    try:
        body.decode()
        if lines:
            raws = [msgspec.Raw(line) for line in body.split(b"\n") if line.strip()]
        elif body.lstrip()[:1] == b"[":
            raws = _LIST.decode(body)
        else:
            whole_body, form = _OBJECT.decode(body), other or _none
            raws = _LIST.decode(whole_body["records"]) if whole_body.keys() == {"records"} else [msgspec.Raw(body)]
        if not raws:
            raise bad_request("there is no record in the body")
        if len(raws) > RECORDS_MAX:
            raise bad_request(f"{len(raws)} records in one request; at most {RECORDS_MAX}")
        return [_record(number, _OBJECT.decode(raw), form) for number, raw in enumerate(raws, 1)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise bad_request(f"the body is no JSON record: {wrong}", 'as in {"key": "k", "value": {"a": 1}}') from None


def _none(_: Mapping[str, msgspec.Raw]) -> NewRecord | None:
    return None


def sides_of(given: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Those of key, value and headers that are given. ValueError with a sentence for what is none."""
    found: dict[str, Any] = {}
    for name in ("key", "value"):
        if name in given or f"{name}_base64" in given:
            found[name] = _side(given, name)
    if "headers" in given:
        found["headers"] = headers_of(given["headers"], coded=False)
    return found


def _record(number: int, given: dict[str, msgspec.Raw], other: OtherForm) -> NewRecord:
    try:
        found = other(given)
    except ValueError as wrong:
        raise bad_request(f"record {number}: {wrong}") from None
    if found is not None:
        return found
    unknown = sorted(given.keys() - _NAMES)
    if unknown:
        raise bad_request(
            f"record {number}: {unknown[0][:100]!r} is no part of a record; there are {', '.join(sorted(_NAMES))}"
        )
    try:
        partition, timestamp = number_of(given, "partition", INT32_MAX), number_of(given, "timestamp", INT64_MAX)
        return NewRecord(**sides_of(given), partition=partition, timestamp=timestamp)
    except (ValueError, msgspec.DecodeError) as wrong:
        raise bad_request(f"record {number}: {wrong}") from None


def _side(given: Mapping[str, msgspec.Raw], name: str) -> bytes | None:
    coded = given.get(f"{name}_base64")
    if coded is None:
        return _plain(given[name])
    if name in given:
        raise ValueError(f"{name} and {name}_base64 exclude each other")
    return from_base64(msgspec.json.decode(coded, type=str), f"{name}_base64")


def _plain(raw: msgspec.Raw) -> bytes | None:
    """Text as it is, null as null, anything else as the JSON that it is."""
    data = bytes(raw).strip()
    if data == b"null":
        return None
    return msgspec.json.decode(data, type=str).encode() if data[:1] == b'"' else data


def from_base64(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name} is not base64") from None


def headers_of(raw: msgspec.Raw, *, coded: bool) -> list[tuple[str, bytes | None]]:
    """A list of names and values, or an object. `coded`: all values are in base64."""
    given: Any = msgspec.json.decode(raw)
    if given is None:
        return []
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise ValueError("headers are a list of objects with name and value")
    return [_header(each, coded=coded) for each in given]


def _header(given: Any, *, coded: bool) -> tuple[str, bytes | None]:
    name = given.get("name", given.get("key")) if isinstance(given, dict) else None
    if not isinstance(name, str):
        raise ValueError("a header is an object with name and value")
    value, in_base64 = given.get("value"), given.get("value_base64")
    if in_base64 is not None and not coded:
        value, coded = in_base64, True
    if value is None:
        return name, None
    if not isinstance(value, str):
        raise ValueError(f"the value of header {name[:100]!r} is no text")
    return name, from_base64(value, f"the value of header {name[:100]!r}") if coded else value.encode()


def number_of(given: Mapping[str, msgspec.Raw], name: str, most: int) -> int | None:
    raw = given.get(name)
    if raw is None or bytes(raw).strip() == b"null":
        return None
    number = whole(msgspec.json.decode(raw), most)
    if number is None:
        raise ValueError(f"{name} is no whole number from 0 to {most}")
    return number
