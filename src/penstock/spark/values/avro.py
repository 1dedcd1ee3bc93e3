"""Avro values as columns, by fastavro. Every value is written with `value.avro.schema`.

With `value.avro.wire=confluent` five bytes come first, a zero and the number of a schema in a registry; they are
checked and skipped.
"""

from __future__ import annotations

import io
import json
from typing import Any, Final

import pyarrow as pa

from penstock.spark.errors import BadOption, Missing
from penstock.spark.values.decoded import Decoded, settle, shortened
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.required import lacking, lacks_something
from penstock.spark.values.type_names import name_of

_HEADER_BYTES: Final = 5
_NESTED: Final = ("type", "fields", "items", "values")
_WRAPPED: Final = ("decimal", "timestamp-millis", "local-timestamp-millis")
"""Logical types whose plain value is not what a column holds."""


class AvroDecoder:
    """One Avro record a value."""

    def __init__(self, schema: pa.Schema, options: ValueOptions) -> None:
        fastavro = _fastavro()
        self.schema = schema
        self._read = fastavro.schemaless_reader
        try:
            self._written = fastavro.parse_schema(_without_wrappers(json.loads(options.avro_schema)))
        except Exception as wrong:
            raise BadOption(f"value.avro.schema is not a schema of Avro: {wrong}") from None
        self._skip = _HEADER_BYTES if options.avro_wire == "confluent" else 0

    def decode(self, values: pa.Array) -> Decoded:
        bad: list[tuple[int, str]] = []
        rows: list[int] = []
        records: list[dict[str, Any]] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                records.append({} if value is None else self._record(value))
                rows.append(row)
            except _Broken as why:
                bad.append((row, str(why)))
        columns = self._columns(rows, records, bad)
        return settle(len(values), columns, bad)

    def _record(self, value: bytes) -> dict[str, Any]:
        if self._skip and (len(value) < self._skip or value[0] != 0):
            raise _Broken(f"not Avro with a schema's number before it: begins with {value[:5].hex() or 'nothing'}")
        source = io.BytesIO(value)
        source.seek(self._skip)
        try:
            found = self._read(source, self._written, None)
        except Exception as wrong:  # fastavro lets through whatever broken bytes lead to
            raise _Broken(f"not Avro of this schema: {type(wrong).__name__}: {shortened(wrong)}") from None
        if source.tell() != len(value):
            raise _Broken(f"not Avro of this schema: {len(value) - source.tell()} bytes are left over")
        if not isinstance(found, dict):
            raise _Broken(f"not a record: {shortened(found)}")
        return found

    def _columns(self, rows: list[int], records: list[dict[str, Any]], bad: list[tuple[int, str]]) -> pa.RecordBatch:
        refused: dict[int, str] = {}
        found = []
        for field in self.schema:
            column = [record.get(field.name) for record in records]
            if not field.nullable:
                refused.update(
                    (at, f"field {field.name}: is NOT NULL, but null") for at, item in enumerate(column) if item is None
                )
            array = _array(column, field, refused)
            if lacks_something(array):
                refused.update(
                    (at, f"field {field.name}: something in it is NOT NULL, but null")
                    for at, item in enumerate(column)
                    if at not in refused and lacking(item, field.type)
                )
            found.append(array)
        batch = pa.RecordBatch.from_arrays(found, schema=self.schema)
        if not refused:
            return batch
        bad.extend((rows[position], why) for position, why in refused.items())
        return batch.take(pa.array([at for at in range(len(rows)) if at not in refused], pa.int64()))


def _without_wrappers(schema: Any) -> Any:
    """The schema without logical types whose plain value is what Arrow takes; fastavro would wrap each in an object."""
    if isinstance(schema, list):
        return [_without_wrappers(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _without_wrappers(part) if name in _NESTED else part for name, part in schema.items()}
    if found.get("logicalType") not in _WRAPPED:
        found.pop("logicalType", None)
    return found


class _Broken(Exception):
    """Bytes that are not what the schema says."""


def _array(column: list[Any], field: pa.Field, refused: dict[int, str]) -> pa.Array:
    """A column; where that is not possible, of what fits, one by one."""
    try:
        return pa.array(column, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        kept: list[Any] = []
        for position, item in enumerate(column):
            try:
                pa.scalar(item, field.type)
                kept.append(item)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                refused.setdefault(
                    position, f"field {field.name}: wanted {name_of(field.type)}, found {shortened(repr(item))}"
                )
                kept.append(None)
        return pa.array(kept, field.type)


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as missing:
        raise Missing("value.format=avro needs fastavro: pip install 'penstock[avro]'") from missing
    return fastavro
