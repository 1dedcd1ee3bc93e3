"""Arrow columns into batches, and keys into partitions."""

from __future__ import annotations

import warnings
from array import array
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import Record, _pure, _pure_client

with warnings.catch_warnings():
    # It reads its schemas with a function of importlib that is deprecated in 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as kafka_python_murmur2

try:
    from penstock.kernels import _compiled_client
except ImportError:
    TWINS = (_pure_client,)
else:
    TWINS = (_pure_client, _compiled_client)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def binary(column: pa.Array, first: int = 0) -> tuple[Any, ...]:
    width = "q" if pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type) else "i"
    validity, offsets, data = column.buffers()
    return validity, memoryview(offsets).cast(width), data, column.offset + first


def columns_of(twin: ModuleType, table: pa.RecordBatch) -> Any:
    lists, stamps = table["headers"], table["timestamp"]
    headers = lists.values
    return twin.Columns(
        table.num_rows,
        key=binary(table["key"]),
        value=binary(table["value"]),
        timestamp=(stamps.buffers()[0], stamps.buffers()[1], stamps.offset),
        headers=(
            lists.buffers()[0],
            memoryview(lists.buffers()[1]).cast("i"),
            binary(headers.field(0), headers.offset),
            binary(headers.field(1), headers.offset),
            lists.offset,
        ),
    )


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 1 << 50),
        st.none() | st.binary(max_size=20),
        st.none() | st.text(max_size=20),
        st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=25,
)


@settings(deadline=None)
@given(ROWS, st.integers(0, 8), st.integers(0, 25), st.sampled_from([pa.binary(), pa.large_binary()]), st.data())
def test_a_slice_of_a_table_becomes_its_records(
    rows: list[Any], start: int, length: int, key_type: pa.DataType, data: st.DataObject
) -> None:
    table = pa.record_batch(
        {
            "timestamp": pa.array([row[0] for row in rows], pa.int64()),
            "key": pa.array([row[1] for row in rows], key_type),
            "value": pa.array([row[2] for row in rows], pa.string()),
            "headers": pa.array(
                [None if row[3] is None else [{"key": name, "value": item} for name, item in row[3]] for row in rows],
                HEADERS,
            ),
        }
    ).slice(start, length)
    picked = data.draw(st.lists(st.integers(0, max(table.num_rows - 1, 0)), max_size=8 if table.num_rows else 0))
    expected = [
        Record(
            index,
            99 if at is None else at,
            key,
            None if value is None else value.encode(),
            tuple(headers or ()),
        )
        for index, (at, key, value, headers) in enumerate(rows[start : start + length])
    ]
    for twin in TWINS:
        columns = columns_of(twin, table)
        assert columns.rows == len(expected)
        builder = twin.RecordsBuilder(1 << 20)
        assert builder.append_columns(columns, 0, columns.rows, timestamp=99) == columns.rows
        assert _pure.decode_records(builder.payload(), builder.count, 0, builder.base_timestamp) == expected
        scattered = twin.RecordsBuilder(1 << 20)
        assert scattered.append_columns(columns, 0, len(picked), array("i", picked), 99) == len(picked)
        assert _pure.decode_records(scattered.payload(), scattered.count, 0, scattered.base_timestamp) == [
            expected[row]._replace(offset=index) for index, row in enumerate(picked)
        ]
        chosen = twin.partition_rows(columns, 7)
        assert list(chosen) == [
            -1 if record.key is None else (kafka_python_murmur2(record.key) & 0x7FFFFFFF) % 7 for record in expected
        ]
        assert chosen == twin.partition_keys([record.key for record in expected], 7)


def test_columns_are_taken_up_to_the_limit(client_twin: ModuleType) -> None:
    columns = client_twin.Columns(3, value=(None, array("i", [0, 1, 2, 3]), b"abc"))
    builder = client_twin.RecordsBuilder(16)
    assert builder.append_columns(columns, 0, 3) == 2
    rest = client_twin.RecordsBuilder(16)
    assert rest.append_columns(columns, 2, 3) == 3
    assert _pure.decode_records(rest.payload(), 1, 0, -1) == [Record(0, -1, None, b"c")]


OFFSETS = array("i", [0, 1, 2])


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (-1, {}),
        (1 << 31, {}),
        (2, {"key": (None, OFFSETS)}),
        (2, {"key": (None, OFFSETS, b"ab", 0, 0)}),
        (2, {"key": (None, OFFSETS, b"ab", -1)}),
        (2, {"key": (None, OFFSETS, b"ab", 1)}),
        (2, {"key": (None, OFFSETS, b"ab", (1 << 62) - 1)}),
        (2, {"key": (None, OFFSETS, b"ab", 1 << 80)}),
        (3, {"value": (None, OFFSETS, b"abc")}),
        (2, {"value": (None, OFFSETS, b"a")}),
        (2, {"value": (None, OFFSETS, None)}),
        (2, {"value": (None, array("i", [0, 2, 1]), b"abc")}),
        (2, {"value": (None, array("i", [-1, 1, 2]), b"abc")}),
        (2, {"value": (None, array("q", [0, 1, 1 << 62]), b"abc")}),
        (2, {"value": (None, bytes(OFFSETS), b"ab")}),
        (2, {"value": (None, array("h", [0, 1, 2]), b"ab")}),
        (2, {"value": (b"", OFFSETS, b"ab")}),
        (1, {"value": (b"\xff", array("i", range(10)), b"abcdefghi", 8)}),
        (2, {"timestamp": array("q", [1])}),
        (2, {"timestamp": b"1234567"}),
        (1, {"timestamp": (None, array("q", [1]), 1)}),
        (1, {"timestamp": (b"", array("q", [1]))}),
        (2, {"headers": (None, OFFSETS, (None, OFFSETS, b"ab"))}),
        (2, {"headers": (None, OFFSETS, (None, OFFSETS, b"a"), (None, OFFSETS, b"ab"))}),
        (2, {"headers": (None, array("i", [0, 2, 3]), (None, OFFSETS, b"ab"), (None, OFFSETS, b"ab"))}),
        (2, {"headers": (b"", OFFSETS, (None, OFFSETS, b"ab"), (None, OFFSETS, b"ab"))}),
    ],
)
def test_buffers_that_lie_are_refused(client_twin: ModuleType, rows: int, named: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rows|parts|begins|lies|wide"):
        client_twin.Columns(rows, **named)


def test_a_bitmap_may_begin_in_the_middle_of_a_byte(client_twin: ModuleType) -> None:
    columns = client_twin.Columns(2, key=(b"\x7f\x01", array("i", range(10)), b"abcdefghi", 7))
    assert list(client_twin.partition_rows(columns, 1)) == [-1, 0]


def test_buffers_that_change_afterwards_are_not_read_past_their_end(client_twin: ModuleType) -> None:
    offsets = array("i", [0, 1, 2])
    columns = client_twin.Columns(2, key=(None, offsets, b"ab"))
    offsets[2] = 1_000_000
    builder = client_twin.RecordsBuilder(1 << 20)
    with pytest.raises(ValueError, match="lies at"):
        builder.append_columns(columns, 0, 2)
    with pytest.raises(ValueError, match="lies at"):
        client_twin.partition_rows(columns, 3)
    assert builder.count == 1


def test_a_header_without_a_name_is_refused(client_twin: ModuleType) -> None:
    columns = client_twin.Columns(
        1, headers=(None, array("i", [0, 1]), (b"\x00", OFFSETS, b"ab"), (None, OFFSETS, b"ab"))
    )
    builder = client_twin.RecordsBuilder(100)
    with pytest.raises(ValueError, match="without a name"):
        builder.append_columns(columns, 0, 1)
    assert builder.count == 0


def test_rows_outside_the_columns_are_refused(client_twin: ModuleType) -> None:
    columns = client_twin.Columns(2)
    builder = client_twin.RecordsBuilder(100)
    for start, stop, rows in ((0, 3, None), (-1, 1, None), (2, 1, None), (0, 2, array("i", [0]))):
        with pytest.raises(ValueError, match="outside"):
            builder.append_columns(columns, start, stop, rows)
    for row in (2, -1):
        with pytest.raises(ValueError, match="of 2"):
            builder.append_columns(columns, 0, 1, array("i", [row]))
    assert builder.append_columns(columns, 0, 2) == 2
    assert builder.count == 2


def test_columns_hold_their_buffers(client_twin: ModuleType) -> None:
    data = bytearray(b"ab")
    columns = client_twin.Columns(2, key=(None, OFFSETS, data))
    with pytest.raises(BufferError):
        data.clear()
    del columns
    data.clear()


@settings(deadline=None)
@given(st.binary(max_size=70))
def test_the_hash_is_kafkas(key: bytes) -> None:
    for twin in TWINS:
        assert twin.murmur2(key) == kafka_python_murmur2(key)
        assert twin.murmur2(bytearray(key)) == twin.murmur2(memoryview(key)) == twin.murmur2(key)


def test_known_keys_go_where_kafka_puts_them(client_twin: ModuleType) -> None:
    assert client_twin.murmur2(b"21") == -973932308 & 0xFFFFFFFF
    assert client_twin.murmur2("foobar") == -790332482 & 0xFFFFFFFF
    assert client_twin.murmur2(b"a-little-bit-long-string") == -985981536 & 0xFFFFFFFF
    assert client_twin.murmur2(b"abc") == 479470107
    assert client_twin.partition_of("foobar", 10) == (-790332482 & 0x7FFFFFFF) % 10
    assert list(client_twin.partition_keys([b"21", None, "foobar"], 1_000)) == [
        (-973932308 & 0x7FFFFFFF) % 1_000,
        -1,
        (-790332482 & 0x7FFFFFFF) % 1_000,
    ]
    for wrong in (0, -1, 1 << 31):
        with pytest.raises(ValueError, match="partition"):
            client_twin.partition_of(b"k", wrong)
    with pytest.raises(TypeError):
        client_twin.murmur2(None)


@settings(deadline=None)
@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(-1, n - 1), max_size=60))))
def test_rows_are_grouped_in_order(drawn: tuple[int, list[int]]) -> None:
    partitions, chosen = drawn
    for twin in TWINS:
        groups = twin.group_rows(array("i", chosen), partitions)
        assert [list(group) for group in groups] == [
            [row for row, partition in enumerate(chosen) if partition == wanted] for wanted in [*range(partitions), -1]
        ]


@pytest.mark.parametrize("wrong", [2, -2])
def test_a_row_of_no_partition_is_refused(client_twin: ModuleType, wrong: int) -> None:
    with pytest.raises(ValueError, match="names partition"):
        client_twin.group_rows(array("i", [0, wrong]), 2)
