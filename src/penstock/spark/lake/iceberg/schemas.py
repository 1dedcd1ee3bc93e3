"""Arrow and Iceberg: types that the lake speaks, partition fields as text, what may be widened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.spark.errors import BadOption
from penstock.spark.lake.partitioning import PartitionField, check_fields

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.update.spec import UpdateSpec


def relaxed(schema: pa.Schema) -> pa.Schema:
    """Every column may be null: a later batch may lack it. Large and view types become the plain ones."""
    return pa.schema([pa.field(field.name, plain(field.type), nullable=True) for field in schema])


def plain(kind: pa.DataType) -> pa.DataType:
    """The type as Spark has it: no large offsets, no metadata, nothing required but the keys of maps."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain(kind.value_type), nullable=True))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type), nullable=True) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    return kind


def to_arrow(schema: Schema) -> pa.Schema:
    """The table's columns as the lake speaks of them."""
    return relaxed(schema.as_arrow())


def can_widen(have: pa.DataType, wanted: pa.DataType) -> bool:
    """What Iceberg can do without touching a file: int → long, float → double, more digits before the point."""
    have, wanted = plain(have), plain(wanted)
    if pa.types.is_decimal(have) and pa.types.is_decimal(wanted):
        return bool(have.scale == wanted.scale and have.precision <= wanted.precision)
    return (have, wanted) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def add_partition_fields(spec: UpdateSpec, fields: Sequence[str], columns: pa.Schema) -> None:
    """Adds to a table that is being made what `partition.by` asks for; names are those of other engines: ts_day."""
    from pyiceberg.transforms import parse_transform

    parsed = [PartitionField.of(text) for text in fields]
    check_fields(parsed, columns)
    for field in parsed:
        kind = columns.field(field.column).type
        if field.transform and not _has_time(kind, field.transform):
            raise BadOption(f"partition.by has {field}: {field.column} is {kind}, no time to cut")
        spec.add_field(field.column, parse_transform(field.transform or "identity"), field.name)


def _has_time(kind: pa.DataType, transform: str) -> bool:
    return bool(pa.types.is_timestamp(kind) or (pa.types.is_date(kind) and transform != "hour"))


def partition_fields(spec: PartitionSpec, schema: Schema) -> list[str]:
    """As `partition.by` has them."""
    found = []
    for field in spec.fields:
        source = schema.find_column_name(field.source_id) or field.name
        transform = str(field.transform)
        found.append(source if transform == "identity" else f"{transform}({source})")
    return found


def misfits(have: pa.Schema, wanted: pa.Schema) -> list[str]:
    """One sentence for every column of `wanted` that a table of `have` cannot take, however it evolves."""
    found: list[str] = []
    for field in wanted:
        if field.name in have.names:
            found += _misfits(field.name, have.field(field.name).type, field.type)
    return found


def _misfits(name: str, have: pa.DataType, wanted: pa.DataType) -> list[str]:
    if pa.types.is_struct(have) and pa.types.is_struct(wanted):
        inner = {field.name: field.type for field in have}
        nested = [(f"{name}.{each.name}", inner[each.name], each.type) for each in wanted if each.name in inner]
    elif pa.types.is_list(have) and pa.types.is_list(wanted):
        nested = [(f"{name}[]", have.value_type, wanted.value_type)]
    elif pa.types.is_map(have) and pa.types.is_map(wanted):
        nested = [
            (f"{name}.key", have.key_type, wanted.key_type),
            (f"{name}.value", have.item_type, wanted.item_type),
        ]
    elif plain(have) == plain(wanted) or can_widen(have, wanted) or can_widen(wanted, have):
        return []
    else:
        return [f"column {name} is {have} and cannot become {wanted}: cast it in the query, or give it another name"]
    return [each for arguments in nested for each in _misfits(*arguments)]
