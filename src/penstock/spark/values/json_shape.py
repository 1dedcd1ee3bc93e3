"""Many JSON documents into Arrow columns: msgspec reads each into a typed object, the objects become columns.

Chosen over pyarrow.json, because it reads value by value: rows and values cannot get out of step and a bad record costs
only itself, while pyarrow.json parses joined text, crashes when the first document is `null`, and its errors do not say
which row. It is no slower: in one run on a busy machine, in turns, best of 20 and median in MB/s of a core were 168 and
102 here against 121 and 77 there on documents of 200 bytes, 350 and 244 against 210 and 171 on 1 KB.

A shape takes no more than `json_truth` does, and means the same; what it refuses is asked there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate, chain
from typing import Annotated, Any, Final, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from penstock.spark.values.decimals import fitted
from penstock.spark.values.text_columns import TextColumn
from penstock.spark.values.times import LONG_MOST

Failed = set[int]

STRIDE: Final = 256


class Shape(Protocol):
    """One type: `python` is what msgspec reads it as; null aside."""

    python: Any

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        """A column of what msgspec read; positions whose value does not fit are added to `failed`."""
        ...


def shape_of(kind: pa.DataType, micros_a_unit: int) -> Shape:
    """How a type is read in bulk."""
    t = pa.types
    if t.is_struct(kind):
        return ObjectShape(list(kind), micros_a_unit)
    if t.is_map(kind):
        return _Map(kind, micros_a_unit)
    if t.is_list(kind):
        return _List(kind, micros_a_unit)
    if t.is_integer(kind):
        bits = kind.bit_width - 1
        return _Plain(kind, Annotated[int, msgspec.Meta(ge=-(1 << bits), le=(1 << bits) - 1)])
    if t.is_timestamp(kind):
        return _Instant(kind, micros_a_unit)
    if t.is_date(kind):
        return _Date(kind)
    if t.is_decimal(kind):
        return _Decimal(kind)
    if t.is_string(kind):
        return _Text()
    for fits, python in ((t.is_boolean, bool), (t.is_floating, float), (t.is_binary, bytes)):
        if fits(kind):
            return _Plain(kind, python)
    raise AssertionError(f"check_columns lets no {kind} through")


class ObjectShape:
    """A struct, and the row itself. `empty` is an object without any field."""

    def __init__(self, fields: list[pa.Field], micros_a_unit: int) -> None:
        self._fields = fields
        self._shapes = [shape_of(field.type, micros_a_unit) for field in fields]
        names = [f"f{index}" for index in range(len(fields))]
        self.python = msgspec.defstruct(
            "Row",
            [(name, shape.python | None, None) for name, shape in zip(names, self._shapes, strict=True)],
            rename={name: field.name for name, field in zip(names, fields, strict=True)},
            gc=False,  # objects of a parser hold no circle, and tracking them costs a third
        )
        self.empty = self.python()

    def columns(self, values: Sequence[Any], failed: Failed) -> list[pa.Array]:
        """The columns of objects none of which is null."""
        found = []
        for field, shape, column in zip(self._fields, self._shapes, self._turned(values), strict=True):
            if not field.nullable:
                failed.update(_nulls(column))
            found.append(shape.build(column, failed))
        return found

    def _turned(self, values: Sequence[Any]) -> list[list[Any]]:
        """The values of each field. In strides: turning thousands of tuples at once was measured slower."""
        columns: list[list[Any]] = [[] for _ in self._fields]
        for start in range(0, len(values), STRIDE):
            for column, part in zip(
                columns, zip(*map(astuple, values[start : start + STRIDE]), strict=True), strict=True
            ):
                column.extend(part)
        return columns

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        missing = _nulls(values)
        if not missing:
            return pa.StructArray.from_arrays(self.columns(values, failed), fields=self._fields)
        own: Failed = set()
        columns = self.columns([self.empty if value is None else value for value in values], own)
        # What a null object lacks is not missing.
        failed.update(own.difference(missing))
        mask = pa.array([value is None for value in values])
        return pa.StructArray.from_arrays(columns, fields=self._fields, mask=mask)


class _Plain:
    """What msgspec reads already fits."""

    def __init__(self, kind: pa.DataType, python: Any) -> None:
        self._kind = kind
        self.python = python

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        return pa.array(values, self._kind)


class _Text:
    """Texts, and whole numbers as their text: a schema that calls an id a string is common."""

    def __init__(self) -> None:
        self.python: Any = int | str

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        try:
            return pa.array(values, pa.string())
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            return pa.array([str(value) if isinstance(value, int) else value for value in values], pa.string())


class _Instant:
    """Texts in a column of instants, or numbers in one that has a zone."""

    def __init__(self, kind: pa.DataType, micros_a_unit: int) -> None:
        self._kind = kind
        self._texts = TextColumn(kind)
        self._micros_a_unit = micros_a_unit
        self._most = LONG_MOST // micros_a_unit
        self.python: Any = str if kind.tz is None else int | str

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        try:
            return _text_column(self._texts, pa.array(values, pa.string()), failed)
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            return pa.array(self._mixed(values, failed), self._kind)

    def _mixed(self, values: Sequence[Any], failed: Failed) -> list[int | None]:
        found: list[int | None] = []
        for position, value in enumerate(values):
            micros = None
            if isinstance(value, int):
                if -self._most <= value <= self._most:
                    micros = value * self._micros_a_unit
                else:
                    failed.add(position)
            elif value is not None:
                try:
                    micros = self._texts.read(value)
                except ValueError:
                    failed.add(position)
            found.append(micros)
        return found


class _Date:
    def __init__(self, kind: pa.DataType) -> None:
        self.python: Any = str
        self._texts = TextColumn(kind)

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        return _text_column(self._texts, pa.array(values, pa.string()), failed)


class _Decimal:
    def __init__(self, kind: pa.DataType) -> None:
        self.python: Any = Decimal
        self._kind = kind

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        try:
            return pa.array(values, self._kind)
        except pa.ArrowInvalid:
            return pa.array([self._one(value, at, failed) for at, value in enumerate(values)], self._kind)

    def _one(self, value: Decimal | None, position: int, failed: Failed) -> Decimal | None:
        try:
            return None if value is None else fitted(value, self._kind.precision, self._kind.scale)
        except ValueError:
            failed.add(position)
            return None


class _List:
    def __init__(self, kind: pa.DataType, micros_a_unit: int) -> None:
        self._kind = kind
        self._item = shape_of(kind.value_type, micros_a_unit)
        self.python = list[self._item.python | None]  # type: ignore[name-defined]  # made while running, for msgspec

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        offsets = _offsets(values)
        items = list(chain.from_iterable(value for value in values if value is not None))
        own: Failed = set() if self._kind.value_field.nullable else set(_nulls(items))
        column = self._item.build(items, own)
        failed.update(_owners(own, offsets))
        return pa.ListArray.from_arrays(_starts(values, offsets), column, type=self._kind)


class _Map:
    def __init__(self, kind: pa.DataType, micros_a_unit: int) -> None:
        self._kind = kind
        self._item = shape_of(kind.item_type, micros_a_unit)
        # As above: made while running, for msgspec.
        self.python = dict[str, self._item.python | None]  # type: ignore[name-defined]

    def build(self, values: Sequence[Any], failed: Failed) -> pa.Array:
        offsets = _offsets(values)
        keys = pa.array(list(chain.from_iterable(value for value in values if value is not None)), pa.string())
        items = list(chain.from_iterable(value.values() for value in values if value is not None))
        own: Failed = set() if self._kind.item_field.nullable else set(_nulls(items))
        column = self._item.build(items, own)
        failed.update(_owners(own, offsets))
        return pa.MapArray.from_arrays(_starts(values, offsets), keys, column, type=self._kind)


def _text_column(texts: TextColumn, column: pa.Array, failed: Failed) -> pa.Array:
    positions: list[int] = []
    found = texts.build(column, positions)
    failed.update(positions)
    return found


def _nulls(values: Sequence[Any]) -> list[int]:
    return [position for position, value in enumerate(values) if value is None] if None in values else []


def _offsets(values: Sequence[Any]) -> list[int]:
    """Where the items of each value begin, and the end of all."""
    return list(accumulate((0 if value is None else len(value) for value in values), initial=0))


def _starts(values: Sequence[Any], offsets: list[int]) -> pa.Array:
    """The offsets as Arrow takes them: null where the value is."""
    found = pa.array(offsets, pa.int32())
    if None not in values:
        return found
    absent = pa.array([value is None for value in values] + [False])
    return pc.if_else(absent, pa.scalar(None, pa.int32()), found)


def _owners(items: Failed, offsets: list[int]) -> list[int]:
    """The positions of the values whose items these are."""
    return [bisect_right(offsets, item) - 1 for item in items]
