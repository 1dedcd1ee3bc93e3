"""New records as Confluent's REST API, version 3, has them: objects one behind another, keys and values with types.

    {"key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"a": 1}}, "partition_id": 0}

Each has its answer, in the same order; what is wrong with one is no matter to the others. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from penstock.console.digits import INT32_MAX, INT64_MAX, whole
from penstock.console.messages.arriving import RECORDS_MAX, NewRecord, from_base64, headers_of, number_of

KINDS: Final = frozenset({"BINARY", "JSON", "STRING"})
_NAMES: Final = frozenset({"partition_id", "headers", "key", "value", "timestamp"})
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
# It only has to find where an object ends: what is inside is stored as it was sent, and numbers may have any length.
_SCANNER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True, slots=True)
class TypedRecord:
    """A record, and as what its key and value came; None for one that was not given."""

    record: NewRecord
    key_type: str | None
    value_type: str | None


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is said in place of a record that is none."""

    error_code: int
    message: str


def typed_records_of(body: bytes) -> Iterator[TypedRecord | Wrong]:
    """After what is no JSON nothing can be found any more."""
    try:
        text = body.decode()
    except UnicodeDecodeError as wrong:
        yield Wrong(400, f"the body is no UTF-8: {wrong}")
        return
    at, count = _next(text, 0), 0
    while at < len(text):
        count += 1
        if count > RECORDS_MAX:
            yield Wrong(413, f"a request has {RECORDS_MAX} records at most; those before were taken")
            return
        try:
            _, end = _SCANNER.raw_decode(text, at)
            given = _OBJECT.decode(text[at:end])
        except (ValueError, msgspec.DecodeError, RecursionError) as wrong:
            yield Wrong(400, f"record {count} is no JSON object: {wrong}")
            return
        yield _typed_record(given)
        at = _next(text, end)


def typed_record(given: Mapping[str, msgspec.Raw]) -> NewRecord | None:
    """A record of which key or value is an object of nothing but a known type and data; None for any other."""
    if not any(_is_typed(given.get(name)) for name in ("key", "value")):
        return None
    found = _typed_record(given)
    if isinstance(found, Wrong):
        raise ValueError(found.message)
    return found.record


def _is_typed(raw: msgspec.Raw | None) -> bool:
    if raw is None or bytes(raw).lstrip()[:1] != b"{":
        return False
    given = _OBJECT.decode(raw)
    return given.keys() == {"type", "data"} and msgspec.json.decode(given["type"]) in tuple(KINDS)


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _typed_record(given: Mapping[str, msgspec.Raw]) -> TypedRecord | Wrong:
    unknown = sorted(given.keys() - _NAMES)
    if unknown:
        return Wrong(400, f"{unknown[0][:100]!r} is no part of a record; there are {', '.join(sorted(_NAMES))}")
    try:
        key, key_type = _side(given.get("key"), "key")
        value, value_type = _side(given.get("value"), "value")
        headers = headers_of(given["headers"], coded=True) if "headers" in given else []
        partition = number_of(given, "partition_id", INT32_MAX)
        return TypedRecord(NewRecord(key, value, headers, partition, _moment(given)), key_type, value_type)
    except (ValueError, msgspec.DecodeError) as wrong:
        return Wrong(422, str(wrong))


def _side(raw: msgspec.Raw | None, name: str) -> tuple[bytes | None, str | None]:
    if raw is None or bytes(raw).strip() == b"null":
        return None, None
    try:
        given = _OBJECT.decode(raw)
    except msgspec.DecodeError:
        raise ValueError(f'{name} is an object with type and data, as in {{"type": "JSON", "data": 1}}') from None
    kind = msgspec.json.decode(given.get("type", msgspec.Raw(b"null")))
    if kind not in KINDS:
        raise ValueError(f"the type of {name} is none of {', '.join(sorted(KINDS))}; schemas are not taken here")
    if given.keys() != {"type", "data"}:
        raise ValueError(f"{name} has a type and data, which is null for a null {name}")
    data = bytes(given["data"]).strip()
    if data == b"null":
        return None, kind
    if kind == "JSON":
        return data, kind
    text: Any = msgspec.json.decode(data)
    if not isinstance(text, str):
        raise ValueError(f"the data of {name} is no text, as {kind} has it")
    return from_base64(text, f"the data of {name}") if kind == "BINARY" else text.encode(), kind


def _moment(given: Mapping[str, msgspec.Raw]) -> int | None:
    """A time as ISO 8601 has it, or in ms."""
    raw = given.get("timestamp")
    if raw is None or bytes(raw).strip() == b"null":
        return None
    told = msgspec.json.decode(raw)
    number = whole(told, INT64_MAX)
    if number is not None:
        return number
    try:
        moment = datetime.fromisoformat(told) if isinstance(told, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.year < 1970:
        raise ValueError("timestamp is no time such as 2026-01-31T12:00:00Z, nor milliseconds since 1970")
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def moment_text(ms: int) -> str:
    """As version 3 answers; a time beyond all years stays a number."""
    try:
        return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return str(ms)
