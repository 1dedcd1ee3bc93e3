"""Rows into a table's types: whole columns where every value fits, row by row where some may not. pyarrow only."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from penstock.spark.lake.evolution import Fit
from penstock.spark.lake.partitioning import PartitionField, unnameable

OUTSIDE: Final = "outside of the years 1 to 9999"
"""Stands for a date, or for what holds one."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A row that no column of the table could hold as it is."""

    column: str
    error: str
    row: str
    """The whole row as JSON."""


def fit_rows(
    batch: pa.RecordBatch, fit: Fit, partition: Sequence[PartitionField] = ()
) -> tuple[pa.RecordBatch, list[Unfit]]:
    """The rows that fit, as files hold them, and those that do not."""
    unfit: dict[int, tuple[str, str]] = {}
    cast: dict[str, pa.Array] = {}
    for misfit in fit.misfits:
        index = _index(batch.schema, misfit.column)
        cast[misfit.column], bad = _each_that_fits(batch.column(index), misfit.table)
        for row in bad:
            value = str(_only(batch.column(index).slice(row, 1)))[:100]
            unfit.setdefault(row, (misfit.column, f"{misfit}; {value} does not fit"))
    columns = [
        cast[field.name] if field.name in cast else _as(batch, index, field.type)
        for index, field in zip(fit.takes, fit.files, strict=True)
    ]
    fitted = pa.RecordBatch.from_arrays(columns, schema=fit.files)
    for row, column, why in unnameable(fitted, partition):
        unfit.setdefault(row, (column, f"{why}: a table is split by it"))
    if not unfit:
        return fitted, []
    kept = fitted.filter(pa.array([row not in unfit for row in range(batch.num_rows)]))
    return kept, [Unfit(column, error, row_as_json(batch, row)) for row, (column, error) in sorted(unfit.items())]


def _as(batch: pa.RecordBatch, index: int, kind: pa.DataType) -> pa.Array:
    column = batch.column(index) if index >= 0 else pa.nulls(batch.num_rows, kind)
    return column if column.type == kind else column.cast(kind)


def _index(schema: pa.Schema, column: str) -> int:
    return next(i for i, name in enumerate(schema.names) if name.lower() == column.lower())


def _each_that_fits(column: pa.Array, kind: pa.DataType | None) -> tuple[pa.Array, list[int]]:
    """The column in that type, null where a value does not fit, and which those are."""
    if kind is None or not (_is_number(column.type) and _is_number(kind)):
        present = pc.indices_nonzero(column.is_valid()).to_pylist()
        return pa.nulls(len(column), kind or pa.null()), present
    bad: list[int] = []
    parts = _halved(column, kind, 0, bad)
    return pa.chunked_array(parts, type=kind).combine_chunks(), bad


def _halved(column: pa.Array, kind: pa.DataType, at: int, bad: list[int]) -> list[pa.Array]:
    """Casts it whole if it can be, else its halves: cheap as long as few rows are bad."""
    try:
        done = column.cast(kind)
        # Arrow rounds numbers without a word: only what comes back unchanged has fitted.
        if done.cast(column.type).equals(column):
            return [done]
    except pa.ArrowInvalid:
        pass
    if len(column) == 1:
        bad.append(at)
        return [pa.nulls(1, kind)]
    middle = len(column) // 2
    return _halved(column[:middle], kind, at, bad) + _halved(column[middle:], kind, at + middle, bad)


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def row_as_json(batch: pa.RecordBatch, row: int) -> str:
    """The whole row, for people and for whoever mends it."""
    values = {name: _only(batch.column(index).slice(row, 1)) for index, name in enumerate(batch.schema.names)}
    return json.dumps(values, default=_plain_json, ensure_ascii=False)


def _only(column: pa.Array) -> Any:
    """The one value of a column. A time that Python's calendar does not have is its number."""
    try:
        return column[0].as_py()
    except (OverflowError, ValueError):
        if types.is_timestamp(column.type):
            return column.view(pa.int64())[0].as_py()
        if types.is_struct(column.type):
            return {field.name: _only(part) for field, part in zip(column.type, column.flatten(), strict=True)}
        return OUTSIDE


def _plain_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON")
