"""The columns of rows: raw records as Spark's Kafka connector has them, and what typed rows have beside their value."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.spark.errors import BadOption
from penstock.spark.source.options import METADATA_COLUMNS, SourceOptions

HEADERS_TYPE: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

_RAW: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS_TYPE,
}

TOMBSTONE: Final = "_tombstone"
"""Whether the record has no value: a deletion, in topics that are compacted."""

_METADATA: Final[dict[str, DataType]] = {
    name: BooleanType() if name == TOMBSTONE else _RAW[name.removeprefix("_")] for name in METADATA_COLUMNS
}


def raw_schema(options: SourceOptions) -> StructType:
    """Of raw rows: all columns, or those that `columns` names."""
    return StructType([StructField(name, _RAW[name]) for name in options.columns])


def metadata_fields(names: tuple[str, ...]) -> list[StructField]:
    return [StructField(name, _METADATA[name]) for name in names]


def value_fields(schema: StructType) -> StructType:
    """The columns of a typed row that come from its value."""
    return StructType([field for field in schema.fields if field.name not in _METADATA])


def check_raw(options: SourceOptions, schema: StructType) -> None:
    """Raw rows have the columns they have; a schema of the user's own is refused unless it is just these."""
    wanted = raw_schema(options)
    if _shape(schema) != _shape(wanted):
        raise BadOption(
            f"raw records have the columns {', '.join(options.columns)} and no schema of one's own: leave .schema() "
            "out and choose with select() or the option columns, or say value.format to read values as columns"
        )


def metadata_columns_of(options: SourceOptions, schema: StructType) -> tuple[str, ...]:
    """The metadata columns of a typed row with this schema, in its order; errors when they are not what they can be."""
    found = []
    for field in schema.fields:
        if field.name in _METADATA:
            if _bare(field.dataType) != _bare(_METADATA[field.name]):
                wanted = _METADATA[field.name].simpleString()
                raise BadOption(f"column {field.name} is {field.dataType.simpleString()} in the schema; it is {wanted}")
            found.append(field.name)
    absent = [name for name in options.metadata_columns if name not in found]
    if absent:
        raise BadOption(
            f"metadataColumns names {', '.join(absent)}, which the schema that was given does not have: a schema of "
            "one's own names all columns, those too"
        )
    return tuple(found)


def _shape(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, _bare(field.dataType)) for field in schema.fields]


def _bare(kind: DataType) -> str:
    """A type without its nullability."""
    return kind.simpleString()
