"""Bytes as what they are, for people: JSON, text, or hexadecimal digits. Pure; nothing is interpreted beyond that.

JSON is told as the very text that was stored, because reading and writing it again would round its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from penstock.console.commands import command
from penstock.operations.records.matching import JSON_BYTES_MAX, size_of
from penstock.operations.records.stored import Stored

SHOWN_BYTES: Final = 64 << 10
"""A value that is longer is cut; the whole of it has an address of its own."""
HEADERS_MAX: Final = 200
_JSON_BEGINS: Final = frozenset(b'{["-0123456789tfn \t\r\n')


def shown(record: Stored, most: int = SHOWN_BYTES) -> dict[str, Any]:
    """A record as a page shows it; `most` bytes of a key or value."""
    headers = list(record.headers)
    told = _headers(headers, most)
    return {
        "partition": record.partition,
        "offset": str(record.offset),
        "timestamp": str(record.timestamp),
        "timestamp_type": "create" if record.timestamp_type == 0 else "append",
        "size": size_of(record),
        "key": payload(record.key, most),
        "value": payload(record.value, most),
        "headers": told,
        "more_headers": len(headers) - len(told),
        "command": command(
            "consume",
            names=[record.topic],
            options=["-p", str(record.partition), f"--offset={record.offset}", "-n", "1"],
        ),
    }


def _headers(headers: Sequence[tuple[str, bytes | None]], most: int) -> list[dict[str, Any]]:
    """As many as there is room for, which they share."""
    told: list[dict[str, Any]] = []
    for name, value in headers[:HEADERS_MAX]:
        if most < len(name):
            break
        most -= len(name)
        told.append({"name": printable(name), "value": payload(value, most)})
        most = max(most - len(value or b""), 0)
    return told


def payload(data: bytes | None, most: int = SHOWN_BYTES) -> dict[str, Any]:
    if data is None:
        return {"as": None, "text": None, "size": 0, "cut": False}
    text, why = _decoded(data, most)
    cut = len(data) > most
    if text is None:
        return {"as": "hex", "text": data[:most].hex(), "size": len(data), "cut": cut, "others": [["text", why]]}
    form, others = "text", None
    if _looks_like_json(data):
        wrong = json_trouble(data)
        form, others = ("json", None) if wrong is None else ("text", [["json", wrong]])
    told = {"as": form, "text": text, "size": len(data), "cut": cut}
    return told if others is None else {**told, "others": others}


def _decoded(data: bytes, most: int) -> tuple[str | None, str]:
    """As UTF-8, cut between characters; None and why when it is none."""
    try:
        whole = data.decode()
    except UnicodeDecodeError as wrong:
        return None, f"byte {wrong.start} is no UTF-8"
    if len(data) <= most:
        return whole, ""
    return data[:most].decode(errors="ignore"), ""


def _looks_like_json(data: bytes) -> bool:
    return bool(data) and data[0] in _JSON_BEGINS and not data.isspace()


def json_trouble(data: bytes) -> str | None:
    """Why bytes are no JSON; None when they are."""
    if len(data) > JSON_BYTES_MAX:
        return f"larger than {JSON_BYTES_MAX} bytes"
    try:
        # Its form alone: what it says would be built for nothing, and numbers may be larger than any that are built.
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as wrong:
        return str(wrong)
    return None


def printable(text: str) -> str:
    """A name that some client wrote; halves of surrogate pairs, which no JSON takes, are shown as such."""
    return text.encode("utf-8", "backslashreplace").decode()
