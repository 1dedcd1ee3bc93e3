"""The columns of typed values: what a format gives, as Spark's types, and as the Arrow types that Spark expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from penstock.spark.errors import BadOption
from penstock.spark.values.ddl import struct_of
from penstock.spark.values.options import ValueOptions, group_names

if TYPE_CHECKING:
    import pyarrow as pa

ZONE: Final = "UTC"

_SCALARS: Final = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


def columns_of(options: ValueOptions) -> T.StructType:
    """The columns that values have by these options; not for options whose schema is still to be inferred."""
    assert not options.inferred, "a schema is inferred from a sample, by infer_schema"
    if options.schema is not None:
        found = struct_of(options.schema)
        check_columns(options, found)
        return found
    match options.format:
        case "text":
            return T.StructType([T.StructField("value", T.StringType())])
        case "regex":
            names = group_names(options.regex_pattern)
            return T.StructType([T.StructField(name, T.StringType()) for name in names])
        case "avro":
            from penstock.spark.values.avro_schema import struct_of_avro

            return struct_of_avro(options.avro_schema)
        case _:
            return T.StructType([T.StructField("value", T.BinaryType())])


def check_columns(options: ValueOptions, struct: T.StructType) -> None:
    """Refuses columns that this format cannot fill, naming the first."""
    if not struct.fields:
        raise BadOption("value.schema has no column")
    nested = options.format in ("json", "avro")
    for field in struct.fields:
        _check(field.dataType, field.name, options.format, nested)
    if options.format == "regex":
        groups = group_names(options.regex_pattern)
        for field in struct.fields:
            if field.name not in groups:
                raise BadOption(f"value.schema has {field.name}, but value.regex.pattern has no group of that name")


def _check(kind: T.DataType, where: str, of: str, nested: bool) -> None:
    if isinstance(kind, _SCALARS):
        return
    if nested and isinstance(kind, T.StructType) and kind.fields:
        for field in kind.fields:
            _check(field.dataType, f"{where}.{field.name}", of, nested)
    elif nested and isinstance(kind, T.ArrayType):
        _check(kind.elementType, f"{where}[]", of, nested)
    elif nested and isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        _check(kind.valueType, f"{where}{{}}", of, nested)
    else:
        remedy = "read it as STRING and parse it in a later step"
        raise BadOption(f"column {where} is {kind.simpleString()}, which {of} values cannot fill: {remedy}")


def arrow_schema(struct: T.StructType) -> pa.Schema:
    """Exactly what Spark expects of Arrow batches with these columns, in every detail that it compares."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(struct, timezone=ZONE)
