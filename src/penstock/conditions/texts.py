"""Values as texts and texts as bytes, the same everywhere. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def as_text(value: Any) -> str:
    """A value inside a template, a key or a header: texts as they are, tables and lists as JSON. Never raises."""
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    try:
        return str(value) if isinstance(value, (int, float)) else _encode(value).decode()
    except Exception:  # numbers with thousands of digits, or what JSON cannot say, from an input's own fields
        return f"<{type(value).__name__}>"


def as_key(value: Any) -> bytes | None:
    """A record's key; no value is no key."""
    return None if value is None else to_bytes(as_text(value))


def to_bytes(text: str) -> bytes:
    # A lone half of a surrogate pair has no bytes in UTF-8; it must not cost the record.
    return text.encode("utf-8", "backslashreplace")


def decoded(values: Iterable[bytes]) -> list[str]:
    """Lines as texts. Bytes that are not UTF-8 stay visible as `\\xe9`."""
    return [value.decode("utf-8", "backslashreplace") for value in values]
