"""One record as one line of JSON, and back without loss.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1767225600000, "key": "k", "value": "v",
     "headers": [{"key": "h", "value": "1"}]}

Bytes that are not UTF-8 stand in base64 under a name that says so: `key_base64`, `value_base64`. No key, or a
tombstone, is null; an empty one is "". Whoever writes lines by hand may leave everything out but the value, and give a
value that is not a string, which is then sent as JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.operations.records.reading import BadInput, Input, InputRecord, Stream
from penstock.operations.records.writing import Printable

_NAMES = {
    "topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch", "key", "key_base64", "value",
    "value_base64", "headers", "key_size", "value_size",
}  # fmt: skip


def record_data(record: Printable, *, meta_only: bool = False) -> dict[str, Any]:
    """A record as plain data; without key and value, but with their sizes, when only what is around them counts."""
    data: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    if meta_only:
        data["key_size"] = None if record.key is None else len(record.key)
        data["value_size"] = None if record.value is None else len(record.value)
        data["leader_epoch"] = record.leader_epoch
        data["timestamp_type"] = "append" if record.timestamp_type == 1 else "create"
        return data
    _put(data, "key", record.key)
    _put(data, "value", record.value)
    if record.headers:
        data["headers"] = [_header(name, value) for name, value in record.headers]
    return data


def write_line(record: Printable, *, meta_only: bool = False, pretty: bool = False) -> bytes:
    data = record_data(record, meta_only=meta_only)
    text = json.dumps(data, indent=2 if pretty else None, ensure_ascii=False)
    return text.encode() + b"\n"


def read_lines(stream: Stream) -> Iterator[InputRecord]:
    source, count = Input(stream), 0
    while not source.ended():
        count += 1
        line = source.until(b"\n").strip()
        if line:
            try:
                yield read_line(line)
            except BadInput as wrong:
                raise BadInput(f"line {count}: {wrong}") from None


def read_line(line: bytes) -> InputRecord:
    try:
        data = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as wrong:
        raise BadInput(f"not JSON: {wrong}") from None
    if not isinstance(data, dict):
        raise BadInput(f"a JSON object was expected, not {line[:20].decode(errors='replace')!r}")
    unknown = sorted(set(data) - _NAMES)
    if unknown:
        raise BadInput(f"{unknown[0]!r} is no part of a record; there are {', '.join(sorted(_NAMES))}")
    record = InputRecord(key=_get(data, "key"), value=_get(data, "value"), headers=_headers(data.get("headers") or []))
    topic = data.get("topic")
    if topic is not None and not isinstance(topic, str):
        raise BadInput("the topic is no text")
    record.topic = topic
    record.partition, record.timestamp = _number(data, "partition"), _number(data, "timestamp")
    return record


def _header(name: str, value: bytes | None) -> dict[str, Any]:
    header: dict[str, Any] = {"key": name}
    _put(header, "value", value)
    return header


def _put(data: dict[str, Any], name: str, value: bytes | None) -> None:
    try:
        data[name] = None if value is None else str(value, "utf-8")
    except UnicodeDecodeError:
        assert value is not None
        data[f"{name}_base64"] = base64.b64encode(value).decode()


def _get(data: Mapping[str, Any], name: str) -> bytes | None:
    coded = data.get(f"{name}_base64")
    if coded is not None:
        if data.get(name) is not None:
            raise BadInput(f"{name} and {name}_base64 exclude each other")
        try:
            return base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise BadInput(f"{name}_base64 is not base64") from None
    value = data.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"the {name} holds half of a surrogate pair, which is no text") from None


def _headers(given: object) -> list[tuple[str, bytes | None]]:
    if isinstance(given, Mapping):  # easier to write by hand
        given = [{"key": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise BadInput("headers are a list of objects with key and value")
    headers = []
    for header in given:
        if not isinstance(header, Mapping) or not isinstance(header.get("key"), str):
            raise BadInput("a header is an object with key and value")
        headers.append((header["key"], _get(header, "value")))
    return headers


def _number(data: Mapping[str, Any], name: str) -> int | None:
    number = data.get(name)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise BadInput(f"{name} is no whole number")
    return number
