"""What every parser is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.conditions.paths import Fields

Text: TypeAlias = str | bytes
"""Bytes are lines as they came."""


class Parsed(NamedTuple):
    fields: list[Fields]
    """Of each text; empty where it failed."""
    why: dict[int, str]
    """By place, why it could not be understood."""


Parser: TypeAlias = Callable[[Sequence[Text]], Parsed]

TRUE_WORDS: Final = ("true", "yes", "on", "1")
FALSE_WORDS: Final = ("false", "no", "off", "0")


def as_str(text: Text) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")


def one_by_one(parse: Callable[[str], Fields | str]) -> Parser:
    """Of a function that returns the fields of one text, or words about what is wrong with it."""

    def parser(texts: Sequence[Text]) -> Parsed:
        found: list[Fields] = []
        why: dict[int, str] = {}
        for place, text in enumerate(texts):
            fields = parse(as_str(text))
            if isinstance(fields, str):
                why[place], fields = fields, {}
            found.append(fields)
        return Parsed(found, why)

    return parser


def with_types(parser: Parser, types: Sequence[tuple[str, str]]) -> Parser:
    """With the named fields converted. An empty text is null."""
    if not types:
        return parser
    converters = [(name, CONVERTERS[kind]) for name, kind in types]

    def typed(texts: Sequence[Text]) -> Parsed:
        parsed = parser(texts)
        for place, fields in enumerate(parsed.fields):
            for name, convert in converters:
                value = fields.get(name)
                if isinstance(value, str):
                    try:
                        fields[name] = convert(value) if value else None
                    except ValueError:
                        parsed.why[place] = f"{name} = {value[:60]!r} is not {_KINDS[convert]}"
                        parsed.fields[place] = {}
                        break
        return parsed

    return typed


def _int(text: str) -> int:
    if "_" in text:
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _bool(text: str) -> bool:
    small = text.strip().lower()
    if small in TRUE_WORDS:
        return True
    if small in FALSE_WORDS:
        return False
    raise ValueError(text)


CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {"int": _int, "float": _float, "bool": _bool, "text": str}
_KINDS: Final[dict[Callable[[str], Any], str]] = {
    _int: "a whole number",
    _float: "a number",
    _bool: "true or false",
    str: "a text",
}
