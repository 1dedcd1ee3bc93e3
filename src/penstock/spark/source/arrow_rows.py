"""Records as Arrow rows with just the types that Spark asks for. Bytes stay where the kernel put them.

Spark compares the schema of the first batch with its own, nullability included, so types are taken from Spark and not
made here. Columns that are the same in every row of a piece are made once, as long as the longest piece so far, and
shared by all pieces.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from penstock.client.spans import Piece

MICROS_A_MILLI: Final = 1_000
# A piece of large records has few rows: looking the function up and making its argument would cost more than the sum.
_TIMES: Final = pc.get_function("multiply_checked")
_THOUSAND: Final = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(array("q", [MICROS_A_MILLI]))])[0]
_MILLIS_MAX: Final = ((1 << 63) - 1) // MICROS_A_MILLI
_KEPT_CONSTANTS: Final = 64


class RecordColumns:
    """Makes columns of pieces. `fields` are of Spark's schema; their names are those of raw rows, or begin with `_`."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self.fields = list(fields)
        self._names = [field.name.removeprefix("_") for field in self.fields]
        self._schema = pa.schema(self.fields)
        self._constants: OrderedDict[str | int, pa.Array] = OrderedDict()

    def batch(self, piece: Piece) -> pa.RecordBatch:
        """All columns; the bytes are those of the piece's sink."""
        return pa.RecordBatch.from_arrays(self.columns(piece), schema=self._schema)

    def columns(self, piece: Piece) -> list[pa.Array]:
        return [self._column(name, field.type, piece) for name, field in zip(self._names, self.fields, strict=True)]

    def _column(self, name: str, kind: pa.DataType, piece: Piece) -> pa.Array:
        match name:
            case "key" | "value":
                return binary_column(piece, name)
            case "offset":
                return _numbers(piece, "offset")
            case "timestamp":
                return timestamps(piece, kind)
            case "topic":
                return self._constant(piece.span.topic, piece.rows)
            case "partition":
                return self._constant(piece.span.partition, piece.rows)
            case "timestampType":
                return self._constant(piece.timestamp_type, piece.rows)
            case "headers":
                return headers_column(piece, kind)
            case "tombstone":
                return binary_column(piece, "value").is_null()
        raise AssertionError(f"records have no column {name!r}")

    def _constant(self, value: str | int, rows: int) -> pa.Array:
        found = self._constants.get(value)
        if found is None or len(found) < rows:
            found = self._constants[value] = repeated(value, max(rows, 1_024))
        self._constants.move_to_end(value)
        if len(self._constants) > _KEPT_CONSTANTS:
            self._constants.popitem(last=False)
        return found.slice(0, rows)


def repeated(value: str | int, rows: int) -> pa.Array:
    """A column of strings or 32-bit integers that says the same in every row."""
    # Not pa.array or pa.repeat: they import pandas, if it is there, which takes a new worker a third of a second.
    if isinstance(value, int):
        return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(array("i", [value]) * rows)])
    text = value.encode()
    ends = array("i", range(0, len(text) * rows + 1, len(text))) if text else array("i", [0]) * (rows + 1)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(text * rows)])


def binary_column(piece: Piece, name: str) -> pa.Array:
    """Keys or values of a piece."""
    return _binary(piece.sink.buffers(), name, pa.binary(), piece.rows, f"{name}_validity")


def timestamps(piece: Piece, kind: pa.DataType) -> pa.Array:
    """Times in microseconds, as Spark has them. What lies beyond the years that these can count is cut to the last."""
    millis = _numbers(piece, "timestamp")
    try:
        micros = _TIMES.call([millis, _THOUSAND])
    except pa.ArrowInvalid:
        bounded = pc.min_element_wise(pc.max_element_wise(millis, -_MILLIS_MAX), _MILLIS_MAX)
        micros = pc.multiply(bounded, MICROS_A_MILLI)
    return micros.view(kind)


def headers_column(piece: Piece, kind: pa.DataType) -> pa.Array:
    """Headers of `kind`, a list of structs; null for a record that has none, as Spark's Kafka connector has it."""
    found = piece.sink.buffers()
    count = memoryview(found["header_key_offsets"]).nbytes // 4 - 1
    if count == 0:
        return pa.nulls(piece.rows, kind)
    items = pa.Array.from_buffers(
        kind.value_type,
        count,
        [None],
        children=[
            _binary(found, "header_key", pa.string(), count, None),
            _binary(found, "header_value", pa.binary(), count, "header_value_validity"),
        ],
    )
    ends = pa.Array.from_buffers(pa.int32(), piece.rows + 1, [None, pa.py_buffer(found["headers_offsets"])])
    bare = pc.equal(ends.slice(1), ends.slice(0, piece.rows))
    return pa.ListArray.from_arrays(ends, items, type=kind, mask=bare)


def _numbers(piece: Piece, name: str) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), piece.rows, [None, pa.py_buffer(piece.sink.buffers()[name])])


def _binary(found: dict[str, Any], name: str, kind: pa.DataType, length: int, validity: str | None) -> pa.Array:
    bits = None if validity is None or found[validity] is None else pa.py_buffer(found[validity])
    return pa.Array.from_buffers(
        kind, length, [bits, pa.py_buffer(found[f"{name}_offsets"]), pa.py_buffer(found[f"{name}_data"])]
    )
