"""Texts as typed columns: a whole column by Arrow's casts where those mean what Spark means, else one by one.

A cast says only that something did not fit, not where. So when it fails, the texts of the usual form are told apart by
a pattern and cast again, and the others are read one by one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.values.decimals import decimal_of
from penstock.spark.values.decoded import shortened
from penstock.spark.values.times import days_of, micros_of
from penstock.spark.values.type_names import name_of

_DAY: Final = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_OFFSET: Final = r"(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)"
_WHOLE: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_FRACTION: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPECIAL: Final = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}

ReadOne = Callable[[str], Any]
CastAll = Callable[[pa.Array], pa.Array]


class TextColumn:
    """Texts of one type. `read` raises `ValueError` for a text that is none of it, and defines what all mean."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.read = _reading(kind)
        self._cast = _casting(kind)
        self._usual = _usual_form(kind)

    def build(self, texts: pa.Array, failed: list[int]) -> pa.Array:
        """The column, null where a text is null or does not fit; positions of the latter are added to `failed`."""
        try:
            return self._cast(texts)
        except pa.ArrowInvalid:
            return self._sorted_out(texts, failed)

    def _sorted_out(self, texts: pa.Array, failed: list[int]) -> pa.Array:
        """Texts of the usual form all at once, the others one by one."""
        usual = pc.fill_null(pc.match_substring_regex(texts, self._usual), True)
        try:
            column = self._cast(pc.if_else(usual, texts, pa.scalar(None, pa.string())))
        except pa.ArrowInvalid:
            # A text has the usual form and still means nothing: the 30th of February.
            return pa.array(self._one_by_one(texts, range(len(texts)), failed), self.kind)
        unusual = pc.indices_nonzero(pc.invert(usual))
        found = self._one_by_one(texts.take(unusual), unusual.to_pylist(), failed)
        return pc.replace_with_mask(column, pc.invert(usual), pa.array(found, self.kind))

    def _one_by_one(self, texts: pa.Array, positions: Sequence[int], failed: list[int]) -> list[Any]:
        found: list[Any] = []
        for position, text in zip(positions, texts.to_pylist(), strict=True):
            try:
                found.append(None if text is None else self.read(text))
            except ValueError:
                failed.append(position)
                found.append(None)
        return found


def _reading(kind: pa.DataType) -> ReadOne:
    t = pa.types
    if t.is_string(kind):
        return str
    if t.is_binary(kind):
        return str.encode
    if t.is_boolean(kind):
        return _boolean
    if t.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return lambda text: _whole(text, most)
    if t.is_floating(kind):
        return _float
    if t.is_decimal(kind):
        return lambda text: decimal_of(_fraction(text), kind.precision, kind.scale)
    if t.is_date(kind):
        return days_of
    assert t.is_timestamp(kind), f"check_columns lets no {kind} through"
    zoned = kind.tz is not None
    return lambda text: micros_of(text, zoned=zoned)


def _casting(kind: pa.DataType) -> CastAll:
    t = pa.types
    if t.is_string(kind):
        return lambda texts: texts
    if t.is_boolean(kind):
        return _booleans
    if t.is_integer(kind):
        return lambda texts: _wholes(texts, kind)
    if t.is_timestamp(kind) and kind.tz is not None:
        return lambda texts: _instants(texts, kind)
    return lambda texts: pc.cast(texts, kind)


def reads_as(kind: str, text: str) -> bool:
    """Whether a text can be a value of the type with this name: bigint, double or boolean."""
    try:
        _BY_NAME[kind](text)
        return True
    except ValueError:
        return False


def _usual_form(kind: pa.DataType) -> str:
    """A pattern of RE2; nearly every text of this form can be cast."""
    t = pa.types
    if t.is_boolean(kind):
        return r"^(?i:true|false)$"
    if t.is_integer(kind):
        # One digit less than the type can hold.
        return rf"^-?\d{{1,{len(str(1 << (kind.bit_width - 1))) - 1}}}$"
    if t.is_floating(kind):
        return r"^-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d)?$"
    if t.is_decimal(kind):
        whole = kind.precision - kind.scale
        return rf"^-?\d{{1,{max(whole, 1)}}}" + (rf"(?:\.\d{{1,{kind.scale}}})?$" if kind.scale else "$")
    if t.is_date(kind):
        return f"^{_DAY}$"
    if t.is_timestamp(kind):
        # With a zone or without: a column has one or the other nearly always, and then all of it is cast.
        return f"^{_DAY}{_CLOCK}{_OFFSET if kind.tz is not None else ''}$"
    return "^"


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise ValueError
    return lower == "true"


def _booleans(texts: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(texts)
    true = pc.equal(lower, "true")
    if not pc.all(pc.or_(true, pc.equal(lower, "false"))).as_py() and texts.null_count < len(texts):
        raise pa.ArrowInvalid("not a boolean")
    return true


def _whole(text: str, most: int) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    number = int(text)
    if not -most <= number < most:
        raise ValueError
    return number


def _wholes(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    # Arrow reads 0x10 as sixteen; nobody else does.
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise pa.ArrowInvalid("not a number")
    return pc.cast(texts, kind)


def _fraction(text: str) -> str:
    text = text.strip()
    if not _FRACTION.fullmatch(text):
        raise ValueError
    return text


def _float(text: str) -> float:
    text = text.strip()
    special = _SPECIAL.get(text.lower().lstrip("+-"))
    if special is not None and len(text) - len(text.lstrip("+-")) <= 1:
        return -special if text[0] == "-" else special
    return float(_fraction(text))


def _instants(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        # The cast wants a zone on every text; without any they are UTC.
        return pc.cast(pc.cast(texts, pa.timestamp(kind.unit)), kind)


_BY_NAME: Final = {"bigint": _reading(pa.int64()), "double": _float, "boolean": _boolean}


class TextColumns:
    """Rows of texts as typed columns; a row with a text that does not fit its column is refused as a whole."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns = [TextColumn(field.type) for field in schema]

    def typed(self, rows: Sequence[int], texts: Sequence[pa.Array], bad: list[tuple[int, str]]) -> pa.RecordBatch:
        """The rows that fit. `rows` are their numbers; the refused ones are added to `bad` with their reason."""
        reasons: dict[int, str] = {}
        found: list[pa.Array] = []
        for field, column, given in zip(self.schema, self._columns, texts, strict=True):
            failed: list[int] = []
            found.append(column.build(given, failed))
            for position in failed:
                why = f"field {field.name}: wanted {name_of(field.type)}, found {shortened(given[position].as_py())}"
                reasons.setdefault(position, why)
            if not field.nullable and given.null_count:
                for position in pc.indices_nonzero(given.is_null()).to_pylist():
                    reasons.setdefault(position, f"field {field.name}: is NOT NULL, but null")
        batch = pa.RecordBatch.from_arrays(found, schema=self.schema)
        if not reasons:
            return batch
        bad.extend((rows[position], why) for position, why in reasons.items())
        return batch.take(pa.array([position for position in range(len(rows)) if position not in reasons], pa.int64()))
