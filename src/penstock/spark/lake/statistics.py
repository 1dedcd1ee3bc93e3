"""What Delta's log says of a file, so that readers pass over files: taken from the Parquet footer. pyarrow only.

Bounds may be wide but never wrong: text is cut to 32 characters and rounded outwards, times to milliseconds likewise,
numbers with NaN among them have none.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import types

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

COLUMNS_MAX: Final = 32
"""Delta's own default: statistics of the first 32 columns."""

_TEXT_MAX: Final = 32
_LAST_CHARACTER: Final = "\U0010ffff"


def delta_statistics(schema: pa.Schema, footer: FileMetaData, with_nan: Collection[str] = ()) -> str:
    """As JSON; `with_nan` are the columns of which some value is not a number."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    leaf = 0
    for field in list(schema)[:COLUMNS_MAX]:
        if not types.is_nested(field.type):
            found = [footer.row_group(group).column(leaf).statistics for group in range(footer.num_row_groups)]
            if all(each is not None and each.has_null_count for each in found):
                nulls[field.name] = sum(each.null_count for each in found)
                bounded = [each for each in found if each.num_values > 0]
                if field.name not in with_nan and _has_bounds(field.type) and all(b.has_min_max for b in bounded):
                    _bound(field.name, bounded, least, most)
        leaf += _leaves(field.type)
    return json.dumps(
        {"numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls},
        ensure_ascii=False,
    )


def _bound(name: str, bounded: list[Any], least: dict[str, Any], most: dict[str, Any]) -> None:
    # Arrow's times reach further than Python's: those have no bounds.
    with contextlib.suppress(OverflowError, ValueError):
        if bounded:
            lowest, highest = min(each.min for each in bounded), max(each.max for each in bounded)
            least[name], most[name] = _below(lowest), _above(highest)


def _has_bounds(kind: pa.DataType) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )


def _below(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT_MAX]
    return _time(value, up=False) if isinstance(value, datetime.date) else value


def _above(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT_MAX else value[:_TEXT_MAX] + _LAST_CHARACTER
    return _time(value, up=True) if isinstance(value, datetime.date) else value


def _time(value: datetime.date, *, up: bool) -> str:
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    over = value.microsecond % 1000
    if over and up and value.year < datetime.MAXYEAR:
        value += datetime.timedelta(microseconds=1000 - over)
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text + "Z" if value.tzinfo is not None else text.replace("T", " ")


def _leaves(kind: pa.DataType) -> int:
    """How many columns a Parquet file has for it."""
    if types.is_struct(kind):
        return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields))
    if types.is_map(kind):
        return _leaves(kind.key_type) + _leaves(kind.item_type)
    if types.is_list(kind):
        return _leaves(kind.value_type)
    return 1
