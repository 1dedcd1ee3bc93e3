"""Records appended one by one, in lists and from columns, into the memory that is sent."""

from __future__ import annotations

import warnings
from array import array
from types import ModuleType
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import HEADER_BYTES, BadBatch, Record, _pure, _pure_client, check_batch

with warnings.catch_warnings():
    # It reads its schemas with a function of importlib that is deprecated in 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords as KafkaPythonRecords

try:
    from penstock.kernels import _compiled_client
except ImportError:
    TWINS = (_pure_client,)
else:
    TWINS = (_pure_client, _compiled_client)

ROOMY = 1 << 20

ROWS = st.lists(
    st.tuples(
        st.integers(0, 1 << 50),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


def sealed(builder: Any, twin: ModuleType) -> bytearray:
    batch: bytearray = builder.frame()
    twin.write_header(
        batch, 0, -1, 0, builder.count - 1, builder.base_timestamp, builder.max_timestamp, 5, 1, 7, builder.count
    )
    return batch


@settings(deadline=None)
@given(ROWS)
def test_what_is_built_every_reader_reads(rows: list[Any]) -> None:
    expected = [Record(i, at, key, value, tuple(headers)) for i, (at, key, value, headers) in enumerate(rows)]
    batches = []
    for twin in TWINS:
        builder = twin.RecordsBuilder(ROOMY)
        assert all(builder.append(*row) for row in rows)
        assert bytes(builder.payload()) == _pure.encode_records(expected, 0, rows[0][0])
        assert (builder.count, builder.size) == (len(rows), len(builder.payload()))
        assert (builder.base_timestamp, builder.max_timestamp) == (rows[0][0], max(row[0] for row in rows))
        batches.append(bytes(sealed(builder, twin)))
    assert len(set(batches)) == 1
    header, facts = check_batch(batches[0])
    assert facts is not None
    assert facts.dense
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 7)
    for reader in (KafkaPythonRecords, AiokafkaRecords):
        foreign = reader(batches[0]).next_batch()
        assert foreign.validate_crc()
        assert [
            Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
            for record in foreign
        ] == expected


def test_keys_and_values_may_be_any_bytes_or_text(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    for data in (b"k\xc3\xbc", bytearray(b"k\xc3\xbc"), memoryview(b"-k\xc3\xbc-")[1:-1], "kü"):
        assert builder.append(1, data, data, [("h", data)])
    records = _pure.decode_records(builder.payload(), 4, 0, 1)
    assert {record[2:] for record in records} == {(b"k\xc3\xbc", b"k\xc3\xbc", (("h", b"k\xc3\xbc"),))}


@pytest.mark.parametrize("wrong", [5, 1.5, ["a"], object()])
def test_what_is_neither_bytes_nor_text_is_a_type_error(client_twin: ModuleType, wrong: object) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    for arguments in ((wrong, b""), (b"", wrong), (b"", b"", [("h", wrong)])):
        with pytest.raises(TypeError):
            builder.append(1, *arguments)
    with pytest.raises(TypeError):
        builder.append(1.5, b"", b"")
    with pytest.raises(BufferError):
        builder.append(1, memoryview(b"abcd")[::2], b"")
    with pytest.raises(UnicodeEncodeError):
        builder.append(1, "\ud800", b"")
    assert (builder.count, builder.size) == (0, 0)


def test_a_record_that_passes_the_limit_is_left_to_the_next_batch(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(20)
    assert builder.append(1, None, b"x" * 100)  # the first is taken whatever its size
    assert not builder.append(2, None, b"")
    assert (builder.count, builder.max_timestamp) == (1, 1)
    builder = client_twin.RecordsBuilder(2 * 9)
    assert [builder.append(1, None, b"xx") for _ in range(3)] == [True, True, False]
    assert builder.size == 18


def test_lists_are_taken_up_to_the_limit(client_twin: ModuleType) -> None:
    values, keys = [b"a", b"b", None, b"d", "e"], [None, b"2", b"3", b"4", "5"]
    builder = client_twin.RecordsBuilder(8 + 9 + 8)
    assert builder.append_many(7, values, keys, 0) == 3
    rest = client_twin.RecordsBuilder(ROOMY)
    assert rest.append_many(7, values, keys, 3) == 5
    assert rest.append_many(7, values, start=1, stop=2) == 2
    assert [(record.key, record.value) for record in _pure.decode_records(rest.payload(), 3, 0, 7)] == [
        (b"4", b"d"),
        (b"5", b"e"),
        (None, b"b"),
    ]


def test_lists_may_bring_timestamps_headers_and_chosen_rows(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    taken = builder.append_many(
        0,
        (b"a", b"b", b"c"),
        rows=array("i", [2, 0, 1]),
        stop=2,
        timestamps=[10, 11, 12],
        headers=[[("h", b"1")], (), ()],
    )
    assert taken == 2
    assert _pure.decode_records(builder.payload(), 2, 0, 12) == [
        Record(0, 12, None, b"c"),
        Record(1, 10, None, b"a", (("h", b"1"),)),
    ]


def test_a_list_that_shrinks_while_it_is_read_is_not_read_past_its_end(client_twin: ModuleType) -> None:
    values: list[bytes] = [b"a", b"b", b"c"]

    class Clearing(str):
        def encode(self, *_: str) -> bytes:
            values.clear()
            return b"h"

    builder = client_twin.RecordsBuilder(ROOMY)
    with pytest.raises((ValueError, IndexError)):
        builder.append_many(1, values, headers=[[(Clearing("h"), b"")], (), ()])
    assert builder.count == 1


def test_lists_and_rows_that_do_not_fit_each_other_are_refused(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    for arguments, named in (
        (([b"", b""], [b""]), {}),
        (([b""],), {"timestamps": []}),
        (([b""],), {"headers": []}),
        (([b""],), {"start": 2}),
        (([b""],), {"start": -1}),
        (([b""],), {"stop": 2}),
        (([b""],), {"rows": array("i", [1])}),
        (([b""],), {"rows": array("i", [-1])}),
        (([b""],), {"rows": array("q", [0])}),
    ):
        with pytest.raises(ValueError, match=r"row|list"):
            builder.append_many(1, *arguments, **named)
    assert builder.count == 0


def test_deltas_that_do_not_fit_are_refused(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    assert builder.append(-(1 << 62), None, None)
    with pytest.raises(ValueError, match="delta"):
        builder.append((1 << 63) - 1, None, None)
    with pytest.raises(OverflowError):
        builder.append(1 << 63, None, None)
    assert builder.count == 1


def test_a_frame_is_the_memory_of_the_builder_and_closes_it(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    builder.append(1, None, b"v")
    frame = builder.frame()
    assert frame is builder.frame()
    assert (len(frame), bytes(frame[HEADER_BYTES:])) == (HEADER_BYTES + builder.size, bytes(builder.payload()))
    with pytest.raises(ValueError, match="closed"):
        builder.append(1, None, b"v")


def test_memory_that_is_looked_at_does_not_move(client_twin: ModuleType) -> None:
    builder = client_twin.RecordsBuilder(ROOMY)
    builder.append(1, None, b"v")
    view = builder.payload()
    seen = bytes(view)
    with pytest.raises(BufferError):
        builder.append(1, None, b"v" * 100_000)
    assert bytes(view) == seen
    view.release()
    assert builder.append(1, None, b"v" * 100_000)
    assert builder.count == 2


def test_a_header_needs_its_room(client_twin: ModuleType) -> None:
    with pytest.raises(BadBatch):
        client_twin.write_header(bytearray(60), 0, -1, 0, 0, 0, 0, -1, -1, -1, 1)
    with pytest.raises((BufferError, TypeError)):
        client_twin.write_header(bytes(61), 0, -1, 0, 0, 0, 0, -1, -1, -1, 1)
