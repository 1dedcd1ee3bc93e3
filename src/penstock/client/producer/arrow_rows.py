"""Arrow tables as rows to send: buffers are handed to the kernels as they lie. pyarrow is only asked for types."""

from __future__ import annotations

from array import array
from typing import Any

from penstock.client.arrow import pyarrow
from penstock.client.errors import ClientError
from penstock.client.producer.bulk import ColumnRows
from penstock.kernels import Columns

SENT = ("key", "value", "timestamp", "headers", "partition")
IGNORED = ("topic", "offset")
"""What a consumer's batch has besides: such a batch can be sent on as it is."""


def arrow_rows(table: Any, now_ms: int) -> ColumnRows:
    """The rows of a `pyarrow.Table` or `RecordBatch`; ClientError names a column that cannot be sent."""
    pa = pyarrow()
    if isinstance(table, pa.Table):
        # A table is a list of chunks; rows are addressed across all of them.
        table = table.combine_chunks()
        batches = table.to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    elif isinstance(table, pa.RecordBatch):
        batch = table
    else:
        raise ClientError(f"a {type(table).__name__} is neither a pyarrow.Table nor a pyarrow.RecordBatch")
    columns = _columns_by_name(batch)
    if "key" not in columns and "value" not in columns:
        raise ClientError("the table has neither a `value` nor a `key` column")
    found = {name: _binary(pa, name, columns[name]) for name in ("key", "value") if name in columns}
    try:
        kernel = Columns(
            batch.num_rows,
            key=_buffers(pa, found.get("key")),
            value=_buffers(pa, found.get("value")),
            timestamp=_timestamps(pa, columns.get("timestamp")),
            headers=_headers(pa, columns.get("headers")),
        )
    except ValueError as wrong:
        raise ClientError(f"the table cannot be sent: {wrong}") from None
    size = sum(column.nbytes for column in found.values()) + 12 * batch.num_rows
    keys, values = (_Lazily(found.get(name)) for name in ("key", "value"))
    return ColumnRows(kernel, size, keys, values, _partitions(pa, columns.get("partition")), now_ms)


def _columns_by_name(batch: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in batch.schema.names:
        if name in SENT:
            found[name] = batch.column(name)
        elif name not in IGNORED:
            raise ClientError(f"column {name!r} cannot be sent; expected {', '.join(SENT)}")
    return found


class _Lazily:
    """A column for partitioners written in Python; one value becomes an object when it is asked for."""

    __slots__ = ("_column",)

    def __init__(self, column: Any) -> None:
        self._column = column

    def __getitem__(self, row: int) -> bytes | str | None:
        if self._column is None:
            return None
        found: bytes | str | None = self._column[row].as_py()
        return found


def _binary(pa: Any, name: str, column: Any) -> Any:
    """A column whose buffers are validity, offsets and data."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_null(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    if kind in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        return column
    if str(kind) in ("string_view", "binary_view"):
        return column.cast(pa.large_binary())
    raise ClientError(f"column {name!r} is {kind}; expected binary or string")


def _buffers(pa: Any, column: Any) -> tuple[Any, ...] | None:
    if column is None:
        return None
    validity, offsets, data = column.buffers()
    wide = column.type in (pa.large_binary(), pa.large_string())
    if offsets is None:
        offsets = bytes(8)
    return validity, memoryview(offsets).cast("B").cast("q" if wide else "i"), data, column.offset


def _timestamps(pa: Any, column: Any) -> tuple[Any, ...] | None:
    """Milliseconds; null means now."""
    if column is None:
        return None
    kind = column.type
    if pa.types.is_timestamp(kind):
        if kind.unit != "ms":
            column = column.cast(pa.timestamp("ms", tz=kind.tz), safe=False)
    elif pa.types.is_integer(kind) or pa.types.is_null(kind):
        column = column.cast(pa.int64())
    else:
        raise ClientError(f"column 'timestamp' is {kind}; expected a timestamp or milliseconds")
    validity, values = column.buffers()
    return validity, values if values is not None else b"", column.offset


def _headers(pa: Any, column: Any) -> tuple[Any, ...] | None:
    if column is None or pa.types.is_null(column.type):
        return None
    kind = column.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        raise ClientError(f"column 'headers' is {kind}; expected list<struct<key: string, value: binary>>")
    items = column.values
    names = [kind.value_type.field(index).name for index in range(kind.value_type.num_fields)]
    if sorted(names) != ["key", "value"]:
        raise ClientError(f"column 'headers' has {names}; expected key and value")
    # `field` carries the struct's own slice over to the child.
    key = _binary(pa, "headers.key", items.field("key"))
    value = _binary(pa, "headers.value", items.field("value"))
    validity, offsets = column.buffers()[:2]
    return validity, memoryview(offsets).cast("B").cast("i"), _buffers(pa, key), _buffers(pa, value), column.offset


def _partitions(pa: Any, column: Any) -> array[int] | None:
    """-1 where the partitioner chooses."""
    if column is None or pa.types.is_null(column.type):
        return None
    if not pa.types.is_integer(column.type):
        raise ClientError(f"column 'partition' is {column.type}; expected integers")
    plain = column.cast(pa.int32()).fill_null(-1)
    start = plain.offset * 4
    return array("i", memoryview(plain.buffers()[1])[start : start + 4 * len(plain)].tobytes())
