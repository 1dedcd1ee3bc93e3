"""Whatever the bytes, both twins of the client's kernels give the same result or raise the same exception."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import BadBytes, Record, _pure, _pure_client
from tests.properties import examples

compiled = pytest.importorskip("penstock.kernels._compiled_client")

COUNTS = st.integers(-2, 6) | st.sampled_from([2**31 - 1, -(2**31)])
NEAR_RECORDS = st.lists(
    st.sampled_from([0, 0, 1, 2, 4, 6, 12, 14, 16, 0x7F, 0x80, 0xFF, 0x0F, 0x10]) | st.integers(0, 255), max_size=60
).map(bytes)


@st.composite
def mutated_payloads(draw: st.DrawFn) -> bytes:
    """Good records with a few bytes changed, cut or doubled."""
    records = [
        Record(
            draw(st.integers(-3, 300)),
            draw(st.integers(-300, 300)),
            draw(st.none() | st.just(b"key")),
            draw(st.none() | st.binary(max_size=90)),
            draw(st.sampled_from([(), (("h", b"v"),), (("ü", None), ("", b""))])),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    payload = bytearray(_pure.encode_records(records, 0, 0))
    for _ in range(draw(st.integers(0, 3))):
        payload[draw(st.integers(0, len(payload) - 1))] = draw(st.integers(0, 255))
    return bytes(payload[: len(payload) - draw(st.sampled_from([0, 0, 0, 1, 5]))])


def seen(call: Any) -> Any:
    try:
        return call()
    except (BadBytes, ValueError, OverflowError) as refused:
        return type(refused), str(refused)


def fields(records: Any) -> Any:
    return [repr(record) for record in records] if isinstance(records, list) else records


def sunk(twin: Any, payload: bytes, count: int, first: int, limit: int, room: int) -> Any:
    sink = twin.ColumnSink(room)

    def taken(base: int) -> Any:
        outcome = seen(lambda: sink.take(payload, count, base, 1_000, None, first, limit))
        return outcome, sink.finished, sink.full, sink.rows

    outcomes = [taken(base) for base in (0, 2**63 - 5, 7)]
    buffers = {name: None if data is None else bytes(data) for name, data in sink.buffers().items()}
    # What lies behind the last row of a bitmap means nothing.
    for name, rows in (("key_validity", sink.rows), ("value_validity", sink.rows)):
        buffers[name] = bits(buffers[name], rows)
    headers = len(buffers["header_key_offsets"] or b"") // 4 - 1
    buffers["header_value_validity"] = bits(buffers["header_value_validity"], headers)
    return outcomes, buffers


def bits(data: bytes | None, rows: int) -> Any:
    return None if data is None else [data[row >> 3] >> (row & 7) & 1 for row in range(rows)]


@settings(max_examples=examples(300), deadline=None)
@given(
    NEAR_RECORDS | mutated_payloads(),
    COUNTS,
    st.integers(-5, 12),
    st.integers(-1, 5),
    st.sampled_from([1, 5, 40, 2**31 - 1]),
)
def test_random_payloads(payload: bytes, count: int, first: int, limit: int, room: int) -> None:
    plain, fast = (
        fields(
            seen(lambda: twin.decode_consumer_records(payload, count, 10, 1_000, None, "t", 1, 2, first))  # noqa: B023
        )
        for twin in (_pure_client, compiled)
    )
    assert plain == fast
    assert sunk(_pure_client, payload, count, first, limit, room) == sunk(compiled, payload, count, first, limit, room)


BUFFERS = st.none() | st.binary(max_size=40)
OFFSETS = st.builds(
    array,
    st.sampled_from(["i", "q"]),
    st.lists(st.integers(0, 6), max_size=9).map(sorted) | st.lists(st.integers(-2, 2**31 - 1), max_size=9),
)
COLUMNS = st.tuples(BUFFERS, OFFSETS, BUFFERS) | st.tuples(BUFFERS, OFFSETS, BUFFERS, st.integers(-1, 9))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(0, 8),
    st.none() | COLUMNS,
    st.none() | COLUMNS,
    st.none() | st.binary(max_size=70) | st.tuples(BUFFERS, st.binary(max_size=70), st.integers(0, 3)),
    st.none() | st.tuples(BUFFERS, OFFSETS, COLUMNS, COLUMNS),
    st.none() | st.lists(st.integers(-1, 8), max_size=5).map(lambda rows: array("i", rows)),
    st.integers(0, 60),
)
def test_random_columns(rows: int, key: Any, value: Any, timestamp: Any, headers: Any, picked: Any, room: int) -> None:
    def built(twin: Any) -> Any:
        columns = twin.Columns(rows, key=key, value=value, timestamp=timestamp, headers=headers)
        builder = twin.RecordsBuilder(room)
        stop = rows if picked is None else len(picked)
        taken = seen(lambda: builder.append_columns(columns, 0, stop, picked, 50))
        chosen = twin.partition_rows(columns, 5)
        facts = builder.count, builder.base_timestamp, builder.max_timestamp
        return taken, facts, bytes(builder.payload()), chosen

    assert seen(lambda: built(_pure_client)) == seen(lambda: built(compiled))
