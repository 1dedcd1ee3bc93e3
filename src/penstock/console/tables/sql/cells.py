"""Values of an answer as text. Numbers have all their digits, whatever a browser could hold. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def texts_of(column: pa.ChunkedArray) -> list[str | None]:
    """A column, cell by cell; None is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_interval(kind):
        # Python's own times have no nanoseconds.
        return list(pc.cast(column, pa.string()).to_pylist())
    return [text_of(value) for value in column.to_pylist()]


def text_of(value: Any) -> str | None:
    if value is None:
        return None
    if hasattr(value, "nanoseconds") and hasattr(value, "months"):
        return f"{value.months} months {value.days} days {value.nanoseconds} ns"
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(_nested(value), ensure_ascii=False)
    told = _nested(value)
    return told if isinstance(told, str) else json.dumps(told)


def _nested(value: Any) -> Any:
    """As JSON has it; Python writes integers with all their digits."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value).hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _nested(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nested(inner) for inner in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return str(value)
