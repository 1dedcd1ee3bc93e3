"""A schema from a sample of values, and a report of how sure it is.

Types are merged over the sample: whole numbers and fractions give DOUBLE, null and anything gives anything, objects are
merged field by field. What does not go together becomes STRING, with a note. Texts stay STRING in JSON even when they
look like times, with a note that they do: the next record need not.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from penstock.spark.errors import BadOption
from penstock.spark.values.ddl import ddl_of, type_text
from penstock.spark.values.decoded import shortened
from penstock.spark.values.inference_report import FieldReport, InferenceReport
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.text import not_text
from penstock.spark.values.times import LONG_LEAST, LONG_MOST, days_of, micros_of

MAP_KEYS_LEAST: Final = 50
"""An object with more names than that, each of them rare, is a map."""
_RARE: Final = 0.1
_EXAMPLE: Final = 40

_SCALARS: Final[dict[str, T.DataType]] = {
    "boolean": T.BooleanType(),
    "bigint": T.LongType(),
    "decimal(38,0)": T.DecimalType(38, 0),
    "double": T.DoubleType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "string": T.StringType(),
}
_NUMBERS: Final = ("bigint", "decimal(38,0)", "double")


def infer_schema(options: ValueOptions, sample: Iterable[bytes | None]) -> tuple[T.StructType, InferenceReport]:
    """Columns for values like these; `BadOption` when none of them can be read."""
    assert options.format in ("json", "csv"), "other formats say by themselves what their columns are"
    look = _json_object if options.format == "json" else _csv_fields(options)
    root = _Seen()
    looked_at = 0
    unreadable: list[str] = []
    for value in sample:
        looked_at += 1
        if value is None:
            continue
        try:
            root.add(look(value))
        except ValueError as wrong:
            unreadable.append(f"{wrong}, in {shortened(value)}")
    if not root.fields:
        raise BadOption(_nothing(looked_at, unreadable))
    return _reported(root, looked_at, unreadable)


def _nothing(looked_at: int, unreadable: list[str]) -> str:
    if not looked_at:
        return "value.schema=infer needs records to look at, and there are none: produce some, or give value.schema"
    first = f"; the first says: {unreadable[0]}" if unreadable else ""
    return f"value.schema=infer found no columns in {looked_at:,} records{first}. Give value.schema"


def _reported(root: _Seen, looked_at: int, unreadable: list[str]) -> tuple[T.StructType, InferenceReport]:
    reports: list[FieldReport] = []
    struct = root.struct("", reports)
    report = InferenceReport(
        ddl=ddl_of(struct),
        fields=tuple(reports),
        looked_at=looked_at,
        unreadable=len(unreadable),
        first_unreadable=unreadable[0] if unreadable else "",
    )
    return struct, report


def _json_object(value: bytes) -> dict[str, Any]:
    broken = not_text(value)
    if broken is not None:
        raise ValueError("not UTF-8")
    try:
        found = json.loads(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _csv_fields(options: ValueOptions) -> Callable[[bytes], dict[str, Any]]:
    """Columns are named as Spark names them when nobody else does."""

    def look(value: bytes) -> dict[str, Any]:
        broken = not_text(value)
        if broken is not None:
            raise ValueError("not UTF-8")
        line = value.decode().removesuffix("\n").removesuffix("\r")
        try:
            rows = list(
                csv.reader(
                    [line] if "\n" not in line else line.splitlines(keepends=True),
                    delimiter=options.csv_delimiter,
                    quotechar=options.csv_quote,
                    escapechar=options.csv_escape or None,
                    strict=True,
                )
            )
        except csv.Error as wrong:
            raise ValueError(str(wrong)) from None
        if len(rows) != 1:
            raise ValueError("not one line of CSV")
        return {f"_c{at}": None if text == options.csv_null else _Text(text) for at, text in enumerate(rows[0])}

    return look


class _Text(str):
    """A text whose type is still open: CSV has no other."""


@dataclass(slots=True)
class _Seen:
    """What was seen in one place of all documents."""

    kinds: Counter[str] = field(default_factory=Counter)
    fields: dict[str, _Seen] = field(default_factory=dict)
    items: _Seen | None = None
    example: str = ""
    looks_like: set[str] = field(default_factory=set)

    @property
    def present(self) -> int:
        return sum(self.kinds.values())

    def add(self, value: Any) -> None:
        """One more value in this place."""
        if isinstance(value, dict):
            self.kinds["object"] += 1
            for name, item in value.items():
                self.fields.setdefault(name, _Seen()).add(item)
            return
        if isinstance(value, list):
            self.kinds["array"] += 1
            self.items = self.items or _Seen()
            for item in value:
                self.items.add(item)
            return
        kind = _kind(value)
        self.kinds[kind] += 1
        if kind == "string" and value:
            self.looks_like.add(_looks_like(value))
        if value is not None and not self.example:
            self.example = shortened(json.dumps(value, ensure_ascii=False), _EXAMPLE)

    def struct(self, path: str, reports: list[FieldReport]) -> T.StructType:
        """The fields, in the order in which they were first seen."""
        found = []
        spelled: dict[str, str] = {}
        for name, seen in self.fields.items():
            where = f"{path}{name}"
            twin = spelled.setdefault(name.lower(), name)
            if twin is not name or not name:
                why = f"left out: differs from {twin} only in case" if name else "left out: it has no name"
                reports.append(FieldReport(where, "", seen.present, self.kinds["object"], seen.example, why))
                continue
            at = len(reports)
            kind, note = seen.type(where, reports)
            reports.insert(
                at, FieldReport(where, type_text(kind), seen.present, self.kinds["object"], seen.example, note)
            )
            found.append(T.StructField(name, kind))
        return T.StructType(found)

    def type(self, path: str, reports: list[FieldReport]) -> tuple[T.DataType, str]:
        """The type of all that was seen, and what there is to say about it."""
        kinds = {kind for kind in self.kinds if kind != "null"}
        if not kinds:
            return T.StringType(), "always null: the type is a guess"
        if kinds == {"object"}:
            return self._object(path, reports)
        if kinds == {"array"}:
            assert self.items is not None
            element, note = self.items.type(f"{path}[]", reports)
            return T.ArrayType(element), note
        if kinds <= set(_NUMBERS):
            return _SCALARS[max(kinds, key=_NUMBERS.index)], "" if len(kinds) == 1 else self._shares()
        if kinds == {"date", "timestamp"}:
            return T.TimestampType(), self._shares()
        if len(kinds) == 1:
            return _SCALARS[kinds.pop()], self._likeness()
        return T.StringType(), f"conflict: {self._shares()}"

    def _object(self, path: str, reports: list[FieldReport]) -> tuple[T.DataType, str]:
        if not self.fields:
            return T.StringType(), "always an empty object: kept as its text"
        if len(self.fields) > MAP_KEYS_LEAST and self._rare():
            value = _Seen()
            for seen in self.fields.values():
                value.take_in(seen)
            kind, note = value.type(f"{path}{{}}", [])
            return T.MapType(
                T.StringType(), kind
            ), f"{len(self.fields)} names, each rare: a map{'; ' if note else ''}{note}"
        inner: list[FieldReport] = []
        found = self.struct(f"{path}.", inner)
        if not found.fields:
            return T.StringType(), "no field has a name: kept as its text"
        reports.extend(inner)
        return found, ""

    def _rare(self) -> bool:
        objects = self.kinds["object"]
        return sum(seen.present for seen in self.fields.values()) < _RARE * objects * len(self.fields)

    def take_in(self, other: _Seen) -> None:
        """Merges what was seen elsewhere."""
        self.kinds += other.kinds
        self.looks_like |= other.looks_like
        self.example = self.example or other.example
        for name, seen in other.fields.items():
            self.fields.setdefault(name, _Seen()).take_in(seen)
        if other.items is not None:
            self.items = self.items or _Seen()
            self.items.take_in(other.items)

    def _shares(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.most_common() if kind != "null")

    def _likeness(self) -> str:
        return f"looks like {self.looks_like.copy().pop().upper()}" if self._all_alike() else ""

    def _all_alike(self) -> bool:
        return len(self.looks_like) == 1 and "" not in self.looks_like


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            if LONG_LEAST <= value <= LONG_MOST:
                return "bigint"
            return "decimal(38,0)" if abs(value) < 10**38 else "double"
        case float():
            return "double"
        case _Text():
            return _kind_of_text(value)
    return "string"


def _kind_of_text(text: str) -> str:
    """What a field of CSV may be; the readings are those of the decoder."""
    from penstock.spark.values.text_columns import reads_as

    for kind in ("bigint", "double", "boolean"):
        if reads_as(kind, text):
            return kind
    return _looks_like(text) or "string"


def _looks_like(text: str) -> str:
    """Only what names a whole day: a number of four digits would be a year."""
    if len(text) < len("2026-1-1") or not text[:4].isdecimal() or text[4] != "-":
        return ""
    for kind, reading in _times():
        try:
            reading(text)
            return kind
        except ValueError:
            continue
    return ""


def _times() -> Iterator[tuple[str, Callable[[str], Any]]]:
    yield "date", _date_alone
    yield "timestamp", lambda text: micros_of(text, zoned=True)


def _date_alone(text: str) -> int:
    if "T" in text or " " in text:
        raise ValueError
    return days_of(text)
