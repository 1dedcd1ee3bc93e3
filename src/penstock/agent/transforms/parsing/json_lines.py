"""JSON: one object a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.agent.transforms.parsing.parser import Parsed, Text
from penstock.conditions.paths import Fields

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def parse_json(texts: Sequence[Text]) -> Parsed:
    found: list[Fields] = []
    why: dict[int, str] = {}
    add = found.append
    for place, text in enumerate(texts):
        try:
            add(_decode(text))
        except Exception as error:
            why[place] = _words(error)
            add({})
    return Parsed(found, why)


def _words(error: Exception) -> str:
    match error:
        case msgspec.ValidationError():
            return f"JSON, but not an object: {error}"
        case msgspec.DecodeError():
            return f"not JSON: {error}"
        case UnicodeDecodeError():
            return "not JSON: it is not UTF-8"
        case RecursionError():
            return "JSON that is nested too deeply"
    return f"not JSON: {error}"
