"""JSON documents as columns: the fast path for all, the judge for those that it does not take."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.spark.values.decoded import Decoded, settle
from penstock.spark.values.json_shape import ObjectShape
from penstock.spark.values.json_truth import UNREADABLE, JsonTruth, Wrong
from penstock.spark.values.options import TIMESTAMP_UNITS, ValueOptions
from penstock.spark.values.text import not_text

CHUNK_ROWS: Final = 4096
"""So many objects and their columns fit a core's cache; measured best between 2,048 and 8,192."""


class JsonDecoder:
    """One JSON object a value."""

    def __init__(self, schema: pa.Schema, options: ValueOptions) -> None:
        self.schema = schema
        micros_a_unit = TIMESTAMP_UNITS[options.timestamp_unit]
        self._shape = ObjectShape(list(schema), micros_a_unit)
        self._decode = msgspec.json.Decoder(self._shape.python).decode
        self._truth = JsonTruth(schema, micros_a_unit)

    def decode(self, values: pa.Array) -> Decoded:
        bad: list[tuple[int, str]] = []
        chunks = [
            self._chunk(values.slice(start, CHUNK_ROWS), start, bad) for start in range(0, len(values), CHUNK_ROWS)
        ]
        return settle(len(values), one_batch(chunks, self.schema), bad)

    def _chunk(self, values: pa.Array, start: int, bad: list[tuple[int, str]]) -> pa.RecordBatch:
        found: list[bytes | None] = values.to_pylist()
        objects, refused = self._objects(_readable(values, found))
        columns = self._shape.columns(objects, refused)
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return batch if not refused else self._judged(batch, found, sorted(refused), start, bad)

    def _objects(self, values: list[bytes]) -> tuple[list[Any], set[int]]:
        """An object a value; where msgspec refuses, an empty one and the row in the set."""
        objects: list[Any] = []
        refused: set[int] = set()
        source = iter(values)
        while True:
            try:
                # What was read before one is refused stays in the list, and the source stands behind that one.
                objects.extend(map(self._decode, source))
                return objects, refused
            except UNREADABLE:
                refused.add(len(objects))
                objects.append(self._shape.empty)

    def _judged(
        self,
        fast: pa.RecordBatch,
        values: list[bytes | None],
        refused: list[int],
        start: int,
        bad: list[tuple[int, str]],
    ) -> pa.RecordBatch:
        """The rows of the fast path without the refused ones, and those among these that the judge lets pass."""
        rows: list[dict[str, Any]] = []
        order = list(range(len(values)))
        wrong: list[int] = []
        for row in refused:
            try:
                rows.append(self._truth.row(values[row]))
                order[row] = len(values) + len(rows) - 1
            except Wrong as why:
                bad.append((start + row, str(why)))
                wrong.append(row)
        for row in reversed(wrong):
            del order[row]
        whole = one_batch([fast, batch_of_rows(rows, self.schema)], self.schema) if rows else fast
        return whole.take(pa.array(order, pa.int64()))


def _readable(array: pa.Array, values: list[bytes | None]) -> list[bytes]:
    """The values for msgspec: what is null has no field, what is not UTF-8 is nothing that it would take.

    It does not look at what it passes over, so a document with a broken name or a broken text there would do.
    """
    try:
        pc.cast(array, pa.string())
        return (
            cast("list[bytes]", values)
            if not array.null_count
            else [b"{}" if value is None else value for value in values]
        )
    except pa.ArrowInvalid:
        return [b"{}" if value is None else b"" if not_text(value) else value for value in values]


def batch_of_rows(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as columns of exactly this schema."""
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def one_batch(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Batches one after the other, as one."""
    if len(batches) == 1:
        return batches[0]
    columns = [
        pa.concat_arrays([batch.column(index) for batch in batches]) if batches else pa.array([], field.type)
        for index, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
