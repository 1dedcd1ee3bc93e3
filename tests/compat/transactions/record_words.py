"""Record data in the other broker's words: producer ids stand in batches too, and markers have the time of day."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import crc32c

from tests.compat.answers.comparing import whole_batches

_HEAD, _CRC_AT, _CRC_FROM, _ATTRIBUTES_AT, _TIMES_AT, _PID_AT = 12, 17, 21, 21, 27, 43
_SHORTEST = 61
_CONTROL = 0x20


def in_other_words(message: Any, pid_of: Callable[[int], Any], *, timeless: bool = False) -> Any:
    """The same message, with other producer ids in its batches; `timeless`: and no times in its markers."""
    if isinstance(message, list):
        return [in_other_words(each, pid_of, timeless=timeless) for each in message]
    if not is_dataclass(message) or isinstance(message, type):
        return message
    changes: dict[str, Any] = {}
    for field in fields(message):
        value = getattr(message, field.name)
        if field.name == "records":
            changes[field.name] = value if value is None else renamed(bytes(value), pid_of, timeless=timeless)
        elif isinstance(value, list) or is_dataclass(value):
            changes[field.name] = in_other_words(value, pid_of, timeless=timeless)
    return replace(message, **changes) if changes else message


def renamed(raw: bytes, pid_of: Callable[[int], Any], *, timeless: bool = False) -> bytes:
    whole, at = len(whole_batches(raw)), 0
    data = bytearray(raw)
    while at + _SHORTEST <= whole:
        end = at + _HEAD + struct.unpack_from(">i", data, at + 8)[0]
        (pid,) = struct.unpack_from(">q", data, at + _PID_AT)
        struct.pack_into(">q", data, at + _PID_AT, pid_of(pid))
        if timeless and data[at + _ATTRIBUTES_AT + 1] & _CONTROL:
            struct.pack_into(">qq", data, at + _TIMES_AT, 0, 0)
        struct.pack_into(">I", data, at + _CRC_AT, crc32c.crc32c(memoryview(data)[at + _CRC_FROM : end]))
        at = end
    return bytes(data)
