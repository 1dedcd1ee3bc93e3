"""What Postgres writes of a value, as JSON. Pure.

Whole numbers and doubles are numbers and booleans are booleans. Decimals stay texts, because a double would round
them; dates and times are texts of ISO 8601, those with a zone in UTC; bytea is base64, json a text, an array a list.
NaN, Infinity and years before Christ, for which JSON or ISO have no words, stay as Postgres writes them. So does
whatever is of a type that is not known here. The connection asks for the forms that are read here (`SESSION`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

SESSION: Final = (
    "-c client_encoding=UTF8 -c datestyle=ISO,YMD -c timezone=UTC -c intervalstyle=iso_8601"
    " -c extra_float_digits=1 -c bytea_output=hex -c lc_monetary=C"
)

Convert: TypeAlias = Callable[[str], Any]

OIDS: Final[dict[int, str]] = {
    16: "bool", 17: "bytea", 18: "char", 19: "name", 20: "int8", 21: "int2", 23: "int4", 25: "text", 26: "oid",
    114: "json", 142: "xml", 700: "float4", 701: "float8", 790: "money", 869: "inet", 1042: "bpchar", 1043: "varchar",
    1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz", 1186: "interval", 1266: "timetz",
    1700: "numeric", 2950: "uuid", 3802: "jsonb",
    1000: "_bool", 1001: "_bytea", 1005: "_int2", 1007: "_int4", 1009: "_text", 1014: "_bpchar", 1015: "_varchar",
    1016: "_int8", 1021: "_float4", 1022: "_float8", 1028: "_oid", 1115: "_timestamp", 1182: "_date", 1183: "_time",
    1185: "_timestamptz", 1187: "_interval", 1231: "_numeric", 199: "_json", 2951: "_uuid", 3807: "_jsonb",
}  # fmt: skip
"""Postgres's own types by their numbers, which never change. The name of an array begins with `_`."""

UNAVAILABLE: Final = "__debezium_unavailable_value"

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?")
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def known_name(schema: str, name: str) -> str:
    """The name by which a type is converted: of somebody's own type that of a text, or of an array of texts."""
    if schema == "pg_catalog":
        return name
    return "_text" if name.startswith("_") else "text"


def converter(type_name: str) -> Convert:
    """For values of a type; of one that is not known: the text."""
    if type_name.startswith("_"):
        element = converter(type_name[1:])
        return lambda text: _array(text, element)
    return _CONVERTERS.get(type_name, str)


def unavailable(type_name: str) -> Any:
    """What stands for a large value that the log does not have. A column's values are of one kind, this one too."""
    if type_name == "bytea":
        return base64.b64encode(UNAVAILABLE.encode()).decode()
    if type_name in _NUMBERS:
        return list(UNAVAILABLE.encode())
    return [UNAVAILABLE] if type_name.startswith("_") else UNAVAILABLE


def _bool(text: str) -> bool:
    return text == "t"


def _float(text: str) -> float | str:
    # Only what is a number in JSON: NaN and Infinity are not.
    return float(text) if _NUMBER.fullmatch(text) else text


def _moment(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    return text if found is None else f"{found[1]}T{found[2]}{'Z' if found[3] else ''}"


def _bytea(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()


_CONVERTERS: Final[dict[str, Convert]] = {
    "bool": _bool,
    "int2": int,
    "int4": int,
    "int8": int,
    "oid": int,
    "float4": _float,
    "float8": _float,
    "timestamp": _moment,
    "timestamptz": _moment,
    "bytea": _bytea,
}

_NUMBERS: Final = frozenset({"_int2", "_int4", "_int8", "_oid", "_float4", "_float8"})

_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"\\]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BOUNDS = re.compile(r"(?:\[-?\d+:-?\d+\])+=")


class _BrokenArray(ValueError):
    """A text that is no array: it is handed on as it stands."""


def _array(text: str, convert: Convert) -> Any:
    """`{1,NULL,"a b"}`, nested as deep as it is. Bounds that do not begin at 1 are left out: lists have none."""
    found = _BOUNDS.match(text)
    start = found.end() if found is not None else 0
    try:
        value, at = _elements(text, start, convert)
    except (_BrokenArray, IndexError):
        return text
    return value if at == len(text) else text


def _elements(text: str, at: int, convert: Convert) -> tuple[list[Any], int]:
    """The array that begins there, and where it ends. Postgres has six dimensions at most."""
    if text[at] != "{":
        raise _BrokenArray
    found: list[Any] = []
    at += 1
    if text[at] == "}":
        return found, at + 1
    while True:
        if text[at] == "{":
            inner, at = _elements(text, at, convert)
            found.append(inner)
        else:
            element = _ELEMENT.match(text, at)
            if element is None:
                raise _BrokenArray
            at = element.end()
            found.append(_element(element, convert))
        if text[at] == "}":
            return found, at + 1
        if text[at] != ",":
            raise _BrokenArray
        at += 1


def _element(element: re.Match[str], convert: Convert) -> Any:
    quoted, plain = element[1], element[2]
    if quoted is not None:
        return convert(_ESCAPED.sub(r"\1", quoted))
    return None if plain.upper() == "NULL" else convert(plain)
