"""Payloads into Arrow columns."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import BadRecord, Record, _pure, _pure_client

try:
    from penstock.kernels import _compiled_client
except ImportError:
    TWINS = (_pure_client,)
else:
    TWINS = (_pure_client, _compiled_client)

ALL = 1 << 40


def table_of(sink: Any) -> pa.Table:
    """The columns of a sink, put together without a copy."""
    rows, given = sink.rows, sink.buffers()
    held = {name: None if data is None else pa.py_buffer(data) for name, data in given.items()}
    headers = held["header_key_offsets"].size // 4 - 1

    def binary(kind: pa.DataType, count: int, name: str, validity: Any) -> pa.Array:
        return pa.Array.from_buffers(kind, count, [validity, held[f"{name}_offsets"], held[f"{name}_data"]])

    pairs = pa.StructArray.from_arrays(
        [
            binary(pa.string(), headers, "header_key", None),
            binary(pa.binary(), headers, "header_value", held["header_value_validity"]),
        ],
        names=["key", "value"],
    )
    table = pa.table(
        {
            "offset": pa.Array.from_buffers(pa.int64(), rows, [None, held["offset"]]),
            "timestamp": pa.Array.from_buffers(pa.int64(), rows, [None, held["timestamp"]]),
            "key": binary(pa.binary(), rows, "key", held["key_validity"]),
            "value": binary(pa.binary(), rows, "value", held["value_validity"]),
            "headers": pa.Array.from_buffers(
                pa.list_(pairs.type), rows, [None, held["headers_offsets"]], children=[pairs]
            ),
        }
    )
    table.validate(full=True)
    return table


def rows_of(table: pa.Table) -> list[Record]:
    return [
        Record(
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in table.to_pylist()
    ]


BATCHES = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 1 << 40),
            st.none() | st.binary(max_size=30),
            st.none() | st.binary(max_size=300),
            st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3).map(tuple),
        ),
        max_size=30,
    ),
    max_size=6,
)


@settings(deadline=None)
@given(BATCHES, st.integers(0, 40), st.integers(0, 60))
def test_many_batches_make_the_table_of_their_records(batches: list[Any], first: int, limit: int) -> None:
    for twin in TWINS:
        sink, expected, offset = twin.ColumnSink(), [], 0
        for rows in batches:
            records = [Record(offset + i, *row) for i, row in enumerate(rows)]
            payload = _pure.encode_records(records, offset, 5)
            decoded = twin.decode_consumer_records(payload, len(rows), offset, 5, None, "t", 0, -1, first)
            left = limit - sink.rows
            wanted = min(len(decoded), left)
            assert sink.take(payload, len(rows), offset, 5, None, first, left) == wanted
            assert sink.finished == (wanted == len(decoded) and (left > 0 or not rows))
            expected += [
                Record(record.offset, record.timestamp, record.key, record.value, record.headers)
                for record in decoded[:wanted]
            ]
            offset += len(rows)
        assert sink.rows == len(expected)
        assert sink.last_offset == (expected[-1].offset if expected else -1)
        assert rows_of(table_of(sink)) == expected


def payload_of(records: list[Record]) -> bytes:
    return bytes(_pure.encode_records(records, 0, 0))


def test_a_batch_is_taken_in_parts(client_twin: ModuleType) -> None:
    payload = payload_of([Record(i, i, None, b"%d" % i) for i in range(5)])
    sink = client_twin.ColumnSink()
    assert (sink.take(payload, 5, 0, 0, None, 0, 2), sink.finished, sink.last_offset) == (2, False, 1)
    assert (sink.take(payload, 5, 0, 0, None, 2, 9), sink.finished, sink.last_offset) == (3, True, 4)
    assert (sink.take(payload, 5, 0, 0, None, 5, 9), sink.finished) == (0, True)
    assert (sink.rows, sink.data_bytes) == (5, 5)
    assert [row.value for row in rows_of(table_of(sink))] == [b"0", b"1", b"2", b"3", b"4"]


def test_append_time_replaces_the_timestamps(client_twin: ModuleType) -> None:
    sink = client_twin.ColumnSink()
    sink.take(payload_of([Record(0, 1, None, b""), Record(1, 2, None, b"")]), 2, 0, 0, 77, 0, ALL)
    assert table_of(sink)["timestamp"].to_pylist() == [77, 77]


def test_an_empty_sink_is_an_empty_table(client_twin: ModuleType) -> None:
    assert table_of(client_twin.ColumnSink()).num_rows == 0


def test_a_bad_record_leaves_the_sink_as_it_was(client_twin: ModuleType) -> None:
    good = [Record(i, 0, None if i % 2 else b"k", None if i % 3 else b"v", (("h", None),)) for i in range(11)]
    sink = client_twin.ColumnSink()
    for _ in range(3):
        for broken, count in ((payload_of(good) + b"\x02\x00", 12), (payload_of(good) + b"\x00", 11)):
            with pytest.raises(BadRecord):
                sink.take(broken, count, 0, 0, None, 0, ALL)
            assert (sink.rows, sink.data_bytes, sink.last_offset, sink.finished) == (0, 0, -1, False)
    shifted = [Record(i, 0, b"k", b"v", (("h", b""),)) for i in range(11)]
    sink.take(payload_of(shifted), 11, 0, 0, None, 0, ALL)
    with pytest.raises(BadRecord):
        sink.take(payload_of(good) + b"\x00", 11, 0, 0, None, 0, ALL)
    sink.take(payload_of(good[:1]), 1, 11, 0, None, 0, ALL)
    assert rows_of(table_of(sink)) == [*shifted, good[0]._replace(offset=11)]


@pytest.mark.parametrize(
    "wide",
    [
        Record(1, 0, b"x" * 6, b""),
        Record(1, 0, None, b"x" * 6),
        Record(1, 0, None, None, (("x" * 6, None),)),
        Record(1, 0, None, None, (("", b"x" * 3), ("", b"x" * 3))),
    ],
)
def test_no_column_passes_its_limit(client_twin: ModuleType, wide: Record) -> None:
    small = Record(0, 0, b"12345", b"12345", (("12345", b"12345"),))
    sink = client_twin.ColumnSink(data_bytes_max=10)
    assert sink.take(payload_of([small, wide, wide]), 3, 0, 0, None, 0, ALL) == 1
    assert (sink.full, sink.finished, sink.last_offset) == (True, False, 0)
    assert rows_of(table_of(sink)) == [small]
    # What fits no sink is taken by an empty one.
    alone = client_twin.ColumnSink(data_bytes_max=4)
    assert alone.take(payload_of([small, wide, wide]), 3, 0, 0, None, 1, ALL) == 1
    assert rows_of(table_of(alone)) == [wide]


def test_a_row_that_adds_nothing_fits_a_column_that_is_full(client_twin: ModuleType) -> None:
    wide = Record(0, 0, b"12", b"12", (("12", b"12"),))
    empty = Record(1, 0, b"", None, (("", b""), ("", None)))
    sink = client_twin.ColumnSink(data_bytes_max=1)
    assert sink.take(payload_of([wide, empty]), 2, 0, 0, None, 0, ALL) == 2
    assert rows_of(table_of(sink)) == [wide, empty]


@pytest.mark.parametrize("limit", [0, -1, 1 << 31])
def test_a_limit_beyond_arrows_offsets_is_refused(client_twin: ModuleType, limit: int) -> None:
    with pytest.raises(ValueError, match="too few or too many"):
        client_twin.ColumnSink(data_bytes_max=limit)


def test_header_names_that_are_not_utf8_are_replaced(client_twin: ModuleType) -> None:
    names = ["\udcff\udcfe", "ü", "a\udcc3"]
    sink = client_twin.ColumnSink()
    sink.take(payload_of([Record(0, 0, None, None, tuple((name, None) for name in names))]), 1, 0, 0, None, 0, ALL)
    assert table_of(sink)["headers"].to_pylist() == [
        [{"key": "\ufffd\ufffd", "value": None}, {"key": "ü", "value": None}, {"key": "a\ufffd", "value": None}]
    ]


def test_the_columns_outlive_the_sink(client_twin: ModuleType) -> None:
    records = [Record(i, i, b"%d" % i, b"v" * 500) for i in range(2_000)]
    sink = client_twin.ColumnSink()
    sink.take(payload_of(records), 2_000, 0, 0, None, 0, ALL)
    table = table_of(sink)
    del sink
    gc.collect()
    filler = [client_twin.ColumnSink() for _ in range(50)]
    for other in filler:
        other.take(payload_of(records[:50]), 50, 0, 0, None, 0, ALL)
    assert rows_of(table) == records


def test_columns_that_were_given_away_take_no_more(client_twin: ModuleType) -> None:
    sink = client_twin.ColumnSink()
    payload = payload_of([Record(3, 0, None, b"v")])
    sink.take(payload, 1, 0, 0, None, 0, ALL)
    assert sink.buffers() is sink.buffers()
    assert (sink.rows, sink.last_offset, sink.data_bytes) == (1, 3, 1)
    with pytest.raises(ValueError, match="given away"):
        sink.take(payload, 1, 0, 0, None, 0, ALL)


@pytest.mark.parametrize("expected_bytes", [-1, 0, 1, 40, 1 << 40])
def test_a_hint_of_what_will_come_changes_no_column(client_twin: ModuleType, expected_bytes: int) -> None:
    records = [Record(number, number, None, b"v" * number) for number in range(20)]
    sink = client_twin.ColumnSink(1_000, expected_bytes)
    assert sink.take(payload_of(records), 20, 0, 0, None, 0, ALL) == 20
    assert (sink.data_bytes, rows_of(table_of(sink))) == (190, records)


def test_a_huge_count_reserves_no_more_than_its_bytes(client_twin: ModuleType) -> None:
    with pytest.raises(BadRecord):
        client_twin.ColumnSink().take(b"\x0c\x00\x00\x00\x01\x01\x00" * 3, (1 << 63) - 1, 0, 0, None, 0, ALL)
