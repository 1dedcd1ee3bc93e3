"""Records as Arrow tables. The only module of the client that knows pyarrow, which is imported when first needed.

topic      dictionary<int8, string>      one entry: a batch is of one partition
partition  int32
offset     int64
timestamp  timestamp[ms, UTC]
key        binary
value      binary
headers    list<struct<key: string, value: binary>>
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.client.errors import ClientError

if TYPE_CHECKING:
    from penstock.kernels import ColumnSink


@cache
def pyarrow() -> Any:
    """The library, or a ClientError that says how to get it."""
    try:
        import pyarrow as found
    except ImportError as missing:
        raise ClientError("Arrow tables need pyarrow: pip install pyarrow") from missing
    return found


@cache
def _header_type() -> Any:
    pa = pyarrow()
    return pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])


@cache
def consumer_schema() -> Any:
    """The schema of every batch that `poll_arrow` gives."""
    pa = pyarrow()
    return pa.schema(
        [
            pa.field("topic", pa.dictionary(pa.int8(), pa.string()), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(pa.field("item", _header_type(), nullable=False)), nullable=False),
        ]
    )


def record_batch(sink: ColumnSink, topic: str, partition: int) -> Any:
    """The columns of `sink` as a `pyarrow.RecordBatch`, without a copy; the sink is finished by it."""
    pa = pyarrow()
    rows = sink.rows
    found = sink.buffers()

    def column(name: str) -> Any:
        buffer = found[name]
        return None if buffer is None else pa.py_buffer(buffer)

    def binary(name: str, kind: Any, length: int, validity: str | None) -> Any:
        bits = None if validity is None else column(validity)
        return pa.Array.from_buffers(kind, length, [bits, column(f"{name}_offsets"), column(f"{name}_data")])

    schema = consumer_schema()
    header_count = memoryview(found["header_key_offsets"]).nbytes // 4 - 1
    header = pa.Array.from_buffers(
        _header_type(),
        header_count,
        [None],
        children=[
            binary("header_key", pa.string(), header_count, None),
            binary("header_value", pa.binary(), header_count, "header_value_validity"),
        ],
    )
    # Zeros: every row has the only topic there is.
    indices = pa.Array.from_buffers(pa.int8(), rows, [None, pa.py_buffer(bytes(rows))])
    return pa.RecordBatch.from_arrays(
        [
            pa.DictionaryArray.from_arrays(indices, pa.array([topic], pa.string())),
            pa.repeat(pa.scalar(partition, pa.int32()), rows),
            pa.Array.from_buffers(pa.int64(), rows, [None, column("offset")]),
            pa.Array.from_buffers(schema.field("timestamp").type, rows, [None, column("timestamp")]),
            binary("key", pa.binary(), rows, "key_validity"),
            binary("value", pa.binary(), rows, "value_validity"),
            pa.Array.from_buffers(
                schema.field("headers").type, rows, [None, column("headers_offsets")], children=[header]
            ),
        ],
        schema=schema,
    )
