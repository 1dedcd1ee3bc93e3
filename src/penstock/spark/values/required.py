"""NOT NULL inside of columns: Arrow carries it and does not check it, and Spark trusts it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def lacks_something(column: pa.Array) -> bool:
    """Whether a null lies where the column's type allows none, at any depth."""
    kind = column.type
    if pa.types.is_struct(kind):
        there = column.filter(column.is_valid())
        return any(_lacks(pc.struct_field(there, [at]), kind.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        there = column.filter(column.is_valid())
        return _lacks(there.items, kind.item_field)
    if pa.types.is_list(kind):
        return _lacks(column.flatten(), kind.value_field)
    return False


def _lacks(inner: pa.Array, field: pa.Field) -> bool:
    return (not field.nullable and inner.null_count > 0) or lacks_something(inner)


def lacking(value: Any, kind: pa.DataType) -> bool:
    """The same of one value, as `pyarrow.array` takes it for the type."""
    return value is not None and lacks_something(pa.array([value], kind))
