"""Files and columns as Delta's log writes them."""

from __future__ import annotations

import time

import pyarrow as pa
from deltalake import Schema
from deltalake.transaction import AddAction, RemoveAction

from penstock.spark.lake.store import CannotEvolve, TableFile, WrittenFile


def add_action(file: WrittenFile, *, data_change: bool = True) -> AddAction:
    # In Delta an empty text as a partition's value is null.
    values = {name: value or None for name, value in file.partition.items()}
    return AddAction(file.path, file.size_bytes, values, _now_ms(), data_change, file.stats)


def remove_action(file: TableFile, location: str, *, data_change: bool) -> RemoveAction:
    relative = file.path.removeprefix(f"{location}/")
    return RemoveAction(relative, data_change, _now_ms(), file.size_bytes, dict(file.partition))


def delta_schema(schema: pa.Schema) -> Schema:
    """`CannotEvolve` for what Delta has no type for."""
    for field in schema:
        try:
            Schema.from_arrow(pa.schema([field]))
        except Exception as failure:
            # deltalake raises bare exceptions here.
            raise CannotEvolve(
                f"column {field.name} is {field.type}, which Delta has no type for: cast it in the query"
            ) from failure
    return Schema.from_arrow(schema)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
