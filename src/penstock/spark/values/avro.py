"""Avro values as columns, by fastavro. A value becomes a row only if it was written with `value.avro.schema`.

Serializers that use a registry put five bytes first: a zero and the number of the schema that the value was written
with. Another schema's bytes often decode, into something else, so the number decides and never the attempt:

    value.avro.schema.id=N[,N]    the numbers that `value.avro.schema` has; others are bad
    value.avro.wire=confluent     values have numbers; until somebody says which are right all are bad, and say theirs
    value.avro.wire=none          values have none
    neither                       plain, unless what follows such a beginning is a whole value by itself
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
_NUMBER_LIKELY: Final = (1 << 24) - 1
"""Registries count from 1: where nobody says that numbers come first, a larger one is taken for a plain value."""
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
        self._wire = options.avro_wire
        self._ids = frozenset(options.avro_schema_ids)

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
        match self._wire:
            case "none":
                return self._decoded(value, 0)
            case "confluent":
                self._check_number(value)
                return self._decoded(value, _HEADER_BYTES)
            case "unsaid":
                return self._decoded(value, 0) if value[:1] != b"\0" else self._undecided(value)

    def _check_number(self, value: bytes) -> None:
        number = _number(value)
        if number is None:
            raise _Broken(f"not Avro with a schema's number before it: begins with {value[:5].hex() or 'nothing'}")
        if number in self._ids:
            return
        if not self._ids:
            raise _Broken(
                f"written with schema {number} of the registry, and nobody says which number value.avro.schema has: "
                f"value.avro.schema.id={number} if it is this one"
            )
        ours = ",".join(map(str, sorted(self._ids)))
        raise _Broken(
            f"written with schema {number} of the registry, and value.avro.schema is that of "
            f"value.avro.schema.id={ours}"
        )

    def _undecided(self, value: bytes) -> dict[str, Any]:
        """A value that begins with a zero, which plain ones may as well."""
        number = _number(value)
        if number is None or number > _NUMBER_LIKELY:
            return self._decoded(value, 0)
        if self._is_whole(value, _HEADER_BYTES):
            raise _Broken(
                f"written with schema {number} of the registry, as it seems: say value.avro.schema.id={number} if "
                "value.avro.schema is this one, or value.avro.wire=none if no number comes before values"
            )
        try:
            return self._decoded(value, 0)
        except _Broken as why:
            raise _Broken(f"{why} (it may be of schema {number} of a registry: see value.avro.schema.id)") from None

    def _is_whole(self, value: bytes, start: int) -> bool:
        try:
            self._decoded(value, start)
        except _Broken:
            return False
        return True

    def _decoded(self, value: bytes, start: int) -> dict[str, Any]:
        source = io.BytesIO(value)
        source.seek(start)
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


def _number(value: bytes) -> int | None:
    """The number that a registry's serializer put first; None when there is no such beginning."""
    if len(value) < _HEADER_BYTES or value[0] != 0:
        return None
    return int.from_bytes(value[1:_HEADER_BYTES], "big")


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
