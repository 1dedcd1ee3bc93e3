"""Rows by partition: which go together, what the partition is called, which directory it is in. pyarrow only.

Directories are Hive's (`day=2026-01-01/`), escaped as Spark escapes them. Readers take
partition values from the table's log, but some from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from penstock.spark.errors import BadOption

NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
DIRECTORY_BYTES_MAX: Final = 255
"""What most file systems allow for a name. Some readers take values from it, so it cannot be cut."""

FIRST_DAY: Final = -719_162
"""0001-01-01, in days from 1970 on."""

END_DAY: Final = 2_932_897
"""The day after 9999-12-31."""

TRANSFORMS: Final = ("day", "hour", "month", "year")

_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{}[]^") | {chr(code) for code in range(32)}
_CALL: Final = re.compile(r"(\w+)\s*\(\s*([^()]+?)\s*\)")
_A_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_FORMATS: Final = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One part of `partition.by`: a column as it is, or a time cut to its day, hour, month or year (Iceberg)."""

    column: str
    transform: str = ""

    @property
    def name(self) -> str:
        return f"{self.column}_{self.transform}" if self.transform else self.column

    @classmethod
    def of(cls, text: str) -> PartitionField:
        call = _CALL.fullmatch(text.strip())
        if call is None:
            return cls(text.strip())
        if call[1].lower() not in TRANSFORMS:
            raise BadOption(f"partition.by has {text}: a column is wanted, or one of {', '.join(TRANSFORMS)} of one")
        return cls(call[2], call[1].lower())

    def __str__(self) -> str:
        return f"{self.transform}({self.column})" if self.transform else self.column


def check_fields(fields: Sequence[PartitionField], schema: pa.Schema) -> None:
    """`BadOption` for what cannot be a partition of a table with that schema."""
    for field in fields:
        if field.column not in schema.names:
            raise BadOption(f"partition.by names {field.column}, which is not a column: {', '.join(schema.names)}")
        kind = schema.field(field.column).type
        if types.is_nested(kind) or types.is_binary(kind):
            raise BadOption(f"partition.by names {field.column}, which is {kind}: a table is split by plain values")
    if len({field.column for field in fields}) == len(schema.names):
        raise BadOption("partition.by names every column: one at least must be left for the files")


def by_partition(rows: pa.Table, fields: Sequence[PartitionField]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """The rows of each partition, in their order; partition values as text."""
    if not fields:
        yield {}, rows
        return
    texts = [partition_texts(rows.column(field.column), field.transform) for field in fields]
    encoded = [text.combine_chunks().dictionary_encode(null_encoding="encode") for text in texts]
    codes = _combined(encoded)
    order = pc.array_sort_indices(codes)
    runs = pc.run_end_encode(codes.take(order), run_end_type=pa.int64())
    ordered = rows.take(order) if len(runs.values) > 1 else rows
    start = 0
    for end in runs.run_ends.to_pylist():
        row = order[start].as_py()
        values = {
            field.name: column.dictionary[column.indices[row].as_py()].as_py()
            for field, column in zip(fields, encoded, strict=True)
        }
        yield values, ordered.slice(start, end - start)
        start = end


def _combined(encoded: Sequence[pa.DictionaryArray]) -> pa.Array:
    """One number for each combination of values."""
    codes, width = encoded[0].indices.cast(pa.int64()), len(encoded[0].dictionary)
    for column in encoded[1:]:
        if width > 1 << 31:
            # Numbers anew, no more than rows, so that the next product stays below 2**63.
            again = codes.dictionary_encode()
            codes, width = again.indices.cast(pa.int64()), len(again.dictionary)
        codes = pc.add(pc.multiply(codes, len(column.dictionary)), column.indices.cast(pa.int64()))
        width *= len(column.dictionary)
    return codes


def partition_texts(column: pa.ChunkedArray, transform: str = "") -> pa.ChunkedArray:
    """Values as tables write partitions down: `2026-01-01`, `2026-01-01 10:00:00.000000` in UTC, `true`, `12.50`."""
    kind = column.type
    if transform:
        return pc.strftime(column.cast(pa.timestamp("us")), format=_FORMATS[transform])
    if types.is_timestamp(kind):
        # The zone goes, the instant stays: it was UTC.
        return pc.strftime(column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S")
    return column if types.is_string(kind) else column.cast(pa.string())


def directory_of(values: Mapping[str, str | None]) -> str:
    """`day=2026-01-01/shop=K%C3…`: relative, "" for a table that is not partitioned."""
    return "/".join(f"{_escaped(name)}={_directory(value)}" for name, value in values.items())


def _directory(value: str | None) -> str:
    if value is None or value == "":
        return NULL_DIRECTORY
    return _escaped(value)


def unnameable(rows: pa.RecordBatch, fields: Sequence[PartitionField]) -> Iterator[tuple[int, str, str]]:
    """Rows whose partition cannot have a name, with the column and why."""
    for field in fields:
        column = rows.column(field.column)
        if types.is_string(column.type):
            for row in _too_long(column, field.name):
                yield row, field.column, f"{field.column} is longer than a directory's name may be"
        elif types.is_timestamp(column.type) or types.is_date(column.type):
            for row in _outside_of_the_calendar(column):
                yield row, field.column, f"{field.column} lies outside of the years 1 to 9999"


def _too_long(column: pa.Array, name: str) -> list[int]:
    room = DIRECTORY_BYTES_MAX - len(f"{_escaped(name)}=".encode())
    # Escaping makes a character three: where none could become too long, nothing is looked at closely.
    if (pc.max(pc.binary_length(column)).as_py() or 0) * 3 <= room:
        return []
    return [
        row
        for row, value in enumerate(column.to_pylist())
        if value is not None and len(_escaped(value).encode()) > room
    ]


def _outside_of_the_calendar(column: pa.Array) -> list[int]:
    """Arrow counts years with 16 bits, and other engines read four digits."""
    kind = column.type
    a_day = _A_DAY[kind.unit] if types.is_timestamp(kind) else 1
    numbers = column.cast(pa.date32()).view(pa.int32()) if types.is_date(kind) else column.view(pa.int64())
    first, end = FIRST_DAY * a_day, END_DAY * a_day
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or (first <= bounds["min"] and bounds["max"] < end):
        return []
    return [row for row, number in enumerate(numbers.to_pylist()) if number is not None and not first <= number < end]


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
