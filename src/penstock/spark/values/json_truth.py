"""What one JSON document means in a schema, and what is wrong with it: the judge of the fast path.

Spark's from_json decides: a field that is missing is null, one that is not in the schema is passed over, of two of one
name the last counts; a fraction is no whole number, not even 1.0; numbers, objects and arrays become their text in a
string column (as it is written, while Spark spells 1.50 anew); a number in a timestamp column counts seconds, or the
unit of `value.timestamp.unit`; binary is base64; decimals round half up; names of numbers ("NaN", Infinity, -INF), in
quotes or bare, are floats. Stricter than Spark: JSON only (no single quotes), UTF-8 only, one object a value and
nothing after it.

Documents are cut into raw pieces by msgspec and each piece is read by its column, so that an error can name the field
and show what was there.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from decimal import InvalidOperation
from typing import Any, Final

import msgspec
import pyarrow as pa

from penstock.spark.values.decimals import decimal_of
from penstock.spark.values.decoded import shortened
from penstock.spark.values.text import not_text
from penstock.spark.values.times import LONG_LEAST, LONG_MOST, days_of, micros_of
from penstock.spark.values.type_names import name_of

Reading = Callable[[bytes], Any]
"""From a raw piece of JSON that is not null to what `pyarrow.array` takes for the type."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a document that it does not take."""

_BOM: Final = b"\xef\xbb\xbf"
_SPECIAL: Final = {
    "NaN": math.nan,
    **dict.fromkeys(("INF", "+INF", "Infinity", "+Infinity"), math.inf),
    **dict.fromkeys(("-INF", "-Infinity"), -math.inf),
}

_pieces: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items: Final = msgspec.json.Decoder(list[msgspec.Raw])
_text: Final = msgspec.json.Decoder(str)


class Wrong(Exception):
    """A value is not what its column wants. `path` is built on the way out."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.path = path

    def under(self, step: str) -> Wrong:
        joint = "." if self.path and not self.path.startswith("[") else ""
        return Wrong(self.why, f"{step}{joint}{self.path}")

    def __str__(self) -> str:
        return f"field {self.path}: {self.why}" if self.path else self.why


class JsonTruth:
    """Reads documents one at a time."""

    def __init__(self, schema: pa.Schema, micros_a_unit: int) -> None:
        self._read = _object_reading(list(schema), micros_a_unit)

    def row(self, value: bytes | None) -> dict[str, Any]:
        """The row that a value is, for `pyarrow.array`; raises `Wrong`. No value at all is a row of nulls."""
        row: dict[str, Any] = self._read(b"{}" if value is None else _document(value))
        return row


def _document(value: bytes) -> bytes:
    """The document, known to be one JSON object and no more, without a byte order mark and bare names of numbers."""
    broken = not_text(value)
    if broken is not None:
        raise Wrong(broken)
    value = value.removeprefix(_BOM)
    try:
        _pieces.decode(value)
    except UNREADABLE as wrong:
        value = _without_bare_names(value, wrong)
    return value


def _without_bare_names(value: bytes, wrong: Exception) -> bytes:
    if isinstance(wrong, msgspec.ValidationError):
        raise Wrong(f"wanted one JSON object, found {shortened(value)}") from None
    if b"NaN" in value or b"Infinity" in value:
        try:
            # Numbers keep their spelling, and only the bare names become texts.
            tree = json.loads(value, parse_int=_raw, parse_float=_raw, parse_constant=str)
            value = msgspec.json.encode(tree)
            _pieces.decode(value)
            return value
        except (ValueError, RecursionError, TypeError, *UNREADABLE):
            pass
    if not value.strip():
        raise Wrong("the value is empty, not JSON") from None
    why = "nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
    raise Wrong(f"not JSON: {why}, in {shortened(value)}") from None


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text)


def _object_reading(fields: list[pa.Field], micros_a_unit: int) -> Reading:
    readings = [(field.name, _reading(field.type, micros_a_unit), field.nullable) for field in fields]

    def read(raw: bytes) -> dict[str, Any]:
        found = _pieces.decode(raw)
        row = {}
        for name, reading, nullable in readings:
            piece = found.get(name)
            try:
                row[name] = _one(None if piece is None else bytes(piece), reading, nullable)
            except Wrong as wrong:
                raise wrong.under(name) from None
        return row

    return read


def _one(raw: bytes | None, reading: Reading, nullable: bool) -> Any:
    if raw is None or raw == b"null":
        if not nullable:
            raise Wrong(f"is NOT NULL, but {'missing' if raw is None else 'null'}")
        return None
    return reading(raw)


def _reading(kind: pa.DataType, micros_a_unit: int) -> Reading:
    """How a type is read; whatever goes wrong inside says which type was wanted and what was found."""
    read = _bare_reading(kind, micros_a_unit)
    wanted = name_of(kind)

    def reading(raw: bytes) -> Any:
        try:
            return read(raw)
        except Wrong:
            raise
        except (ValueError, InvalidOperation, binascii.Error, *UNREADABLE):
            raise Wrong(f"wanted {wanted}, found {shortened(raw)}") from None

    return reading


def _bare_reading(kind: pa.DataType, micros_a_unit: int) -> Reading:
    t = pa.types
    if t.is_struct(kind):
        return _object_reading(list(kind), micros_a_unit)
    if t.is_map(kind):
        return _map_reading(kind, micros_a_unit)
    if t.is_list(kind):
        return _list_reading(kind, micros_a_unit)
    if t.is_boolean(kind):
        return _boolean
    if t.is_integer(kind):
        bits = kind.bit_width - 1
        return lambda raw: _whole(raw, -(1 << bits), (1 << bits) - 1)
    if t.is_floating(kind):
        return _float
    if t.is_decimal(kind):
        return lambda raw: decimal_of(
            _text.decode(raw) if raw[:1] == b'"' else _number(raw), kind.precision, kind.scale
        )
    if t.is_date(kind):
        return lambda raw: days_of(_text.decode(raw))
    if t.is_timestamp(kind):
        zoned = kind.tz is not None
        return lambda raw: _instant(raw, zoned, micros_a_unit)
    if t.is_binary(kind):
        return lambda raw: base64.b64decode(_text.decode(raw), validate=True)
    assert t.is_string(kind), f"check_columns lets no {kind} through"
    return _as_text


def _map_reading(kind: pa.DataType, micros_a_unit: int) -> Reading:
    reading, nullable = _reading(kind.item_type, micros_a_unit), kind.item_field.nullable

    def read(raw: bytes) -> list[tuple[str, Any]]:
        found = []
        for key, piece in _pieces.decode(raw).items():
            try:
                found.append((key, _one(bytes(piece), reading, nullable)))
            except Wrong as wrong:
                raise wrong.under(key) from None
        return found

    return read


def _list_reading(kind: pa.DataType, micros_a_unit: int) -> Reading:
    reading, nullable = _reading(kind.value_type, micros_a_unit), kind.value_field.nullable

    def read(raw: bytes) -> list[Any]:
        found = []
        for index, piece in enumerate(_items.decode(raw)):
            try:
                found.append(_one(bytes(piece), reading, nullable))
            except Wrong as wrong:
                raise wrong.under(f"[{index}]") from None
        return found

    return read


def _as_text(raw: bytes) -> str:
    if raw[:1] == b'"':
        return _text.decode(raw)
    return "0" if raw == b"-0" else raw.decode()


def _boolean(raw: bytes) -> bool:
    if raw not in (b"true", b"false"):
        raise ValueError
    return raw == b"true"


def _number(raw: bytes) -> str:
    if raw[:1] not in b"-0123456789":
        raise ValueError
    return raw.decode("ascii")


def _whole(raw: bytes, least: int, most: int) -> int:
    number = int(_number(raw))
    if not least <= number <= most:
        raise ValueError
    return number


def _float(raw: bytes) -> float:
    if raw[:1] == b'"':
        special = _SPECIAL.get(_text.decode(raw))
        if special is None:
            raise ValueError
        return special
    text = _number(raw)
    if text.lstrip("-").isdecimal() and len(text) < 400:
        try:
            return float(int(text))  # a whole number has no negative zero
        except OverflowError:
            return -math.inf if text[0] == "-" else math.inf
    return float(text)


def _instant(raw: bytes, zoned: bool, micros_a_unit: int) -> int:
    if raw[:1] == b'"':
        return micros_of(_text.decode(raw), zoned=zoned)
    if not zoned:
        raise ValueError
    return _whole(raw, LONG_LEAST // micros_a_unit + 1, LONG_MOST // micros_a_unit) * micros_a_unit
