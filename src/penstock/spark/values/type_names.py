"""Arrow types by the names that Spark's users know."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
}


def name_of(kind: pa.DataType) -> str:
    """What Spark calls a type; the fields of a struct are left out."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        return f"map<{name_of(kind.key_type)},{name_of(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{name_of(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct"
    return _NAMES.get(kind, str(kind))
