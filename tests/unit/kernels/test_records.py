"""Records in and out of payloads."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import BadRecord, Record, RecordFacts, RecordSpan, _pure

try:
    from penstock.kernels import _compiled
except ImportError:
    TWINS = (_pure,)
else:
    TWINS = (_pure, _compiled)

RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(-(1 << 31) + 50, (1 << 31) - 50),
        st.integers(-(1 << 62), 1 << 62),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(RECORDS, st.integers(-40, 40), st.integers(-(1 << 61), 1 << 61))
def test_what_one_twin_encodes_both_decode(records: list[Record], base_offset: int, base_timestamp: int) -> None:
    payload = _pure.encode_records(records, base_offset, base_timestamp)
    for twin in TWINS:
        assert twin.encode_records(records, base_offset, base_timestamp) == payload
        decoded = twin.decode_records(payload, len(records), base_offset, base_timestamp)
        assert decoded == records
        assert all(type(record) is Record for record in decoded)


def test_the_bytes_of_a_record_are_those_of_the_format(twin: ModuleType) -> None:
    record = Record(101, 1_003, b"key", None, (("h", b"v"), ("n", None)))
    body = b"\x00" + b"\x06" + b"\x02" + b"\x06key" + b"\x01" + b"\x04" + b"\x02h\x02v" + b"\x02n\x01"
    assert twin.encode_records([record], 100, 1_000) == bytes([len(body) << 1]) + body


def test_header_keys_that_are_not_utf8_survive(twin: ModuleType) -> None:
    body = b"\x00\x00\x00\x01\x01\x02" + b"\x04\xff\xfe" + b"\x01"
    payload = bytes([len(body) << 1]) + body
    records = twin.decode_records(payload, 1, 0, 0)
    assert twin.encode_records(records, 0, 0) == payload


def test_append_time_replaces_every_timestamp(twin: ModuleType) -> None:
    payload = twin.encode_records([Record(0, 5, None, b""), Record(1, 9, None, b"")], 0, 5)
    assert [record.timestamp for record in twin.decode_records(payload, 2, 0, 5, 77)] == [77, 77]


def test_the_first_of_equal_largest_timestamps_is_told(twin: ModuleType) -> None:
    records = [Record(i, timestamp, b"k", b"") for i, timestamp in enumerate((3, 9, 1, 9))]
    assert twin.walk_records(twin.encode_records(records, 0, 0), 4) == RecordFacts(1, 9, 1, 0, True)


def test_no_records_make_no_facts(twin: ModuleType) -> None:
    assert twin.walk_records(b"", 0) == RecordFacts(0, 0, -1, 0, True)


@pytest.mark.parametrize("offsets", [(1, 2), (0, 2), (1, 0), (0, 0)])
def test_offsets_that_do_not_count_up_are_not_dense(twin: ModuleType, offsets: tuple[int, int]) -> None:
    payload = twin.encode_records([Record(offset, 0, b"k", b"") for offset in offsets], 0, 0)
    assert not twin.walk_records(payload, 2).dense


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x00\x80", "timestamp delta"),
        (b"", "timestamp delta"),
        (b"\x00\x00\x80", "offset delta"),
        (b"\x00\x00\xff\xff\xff\xff\x10\x01\x01\x00", "offset delta"),
        (b"\x00\x00\x00\x03\x01\x00", "key length"),
        (b"\x00\x00\x00\x0a\x01\x00", "key runs past"),
        (b"\x00\x00\x00\x01\x03\x00", "value length"),
        (b"\x00\x00\x00\x01\x0a\x00", "value runs past"),
        (b"\x00\x00\x00\x01\x01", "header count"),
        (b"\x00\x00\x00\x01\x01\x01", "header count"),
        (b"\x00\x00\x00\x01\x01\x02\x01\x01", "key of a header"),
        (b"\x00\x00\x00\x01\x01\x02\x02h", "value of a header"),
        (b"\x00\x00\x00\x01\x01\x02\x02h\x08v", "value of a header"),
        (b"\x00\x00\x00\x01\x01\xff\xff\xff\xff\x0f", "header count"),
        (b"\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f", "key of a header"),
        (b"\x00\x00\x00\x01\x01\x00\x00", "left over after its last header"),
    ],
)
def test_a_broken_record_is_refused_with_the_reason(twin: ModuleType, body: bytes, why: str) -> None:
    good = twin.encode_records([Record(0, 0, b"k", b"v")], 0, 0)
    for kernel in (twin.walk_records, twin.index_records, lambda p, n: twin.decode_records(p, n, 0, 0)):
        with pytest.raises(BadRecord, match=why) as refused:
            kernel(bytes(good) + bytes([len(body) << 1]) + body, 2)
        assert refused.value.index == 1


def test_a_huge_count_costs_no_more_than_its_bytes(twin: ModuleType) -> None:
    with pytest.raises(BadRecord):
        twin.decode_records(b"\x0c\x00\x00\x00\x01\x01\x00" * 3, 2_147_483_647, 0, 0)


def test_hostile_deltas_wrap_like_64_bit_numbers(twin: ModuleType) -> None:
    payload = twin.encode_records([Record(1, (1 << 63) - 1, None, None)], 0, 0)
    (record,) = twin.decode_records(payload, 1, (1 << 63) - 1, (1 << 63) - 1)
    assert (record.offset, record.timestamp) == (-(1 << 63), -2)


def test_deltas_that_do_not_fit_are_not_written(twin: ModuleType) -> None:
    for record in (Record(1 << 31, 0, None, None), Record(0, 1 << 63, None, None)):
        with pytest.raises(ValueError, match="delta"):
            twin.encode_records([record], 0, 0)
        with pytest.raises(ValueError, match="delta"):
            twin.splice_records(b"\x01\x01\x00", [(0, 3, record.offset, record.timestamp)])


def test_an_index_tells_where_the_records_lie(twin: ModuleType) -> None:
    payload = twin.encode_records([Record(5, 10, b"k", b"v"), Record(6, 11, None, None)], 5, 10)
    assert twin.index_records(payload, 2) == [
        RecordSpan(4, 9, 0, 0, b"k", True),
        RecordSpan(13, 16, 1, 1, None, False),
    ]


def test_pieces_are_spliced_with_new_deltas(twin: ModuleType) -> None:
    records = [Record(i, 100 + i, b"k%d" % i, b"v" * i * 40, (("h", b"x"),)) for i in range(5)]
    payload = twin.encode_records(records, 0, 100)
    kept = [span for i, span in enumerate(twin.index_records(payload, 5)) if i % 2]
    spliced = twin.splice_records(
        payload, [(span.rest, span.end, span.offset_delta + 10, span.timestamp_delta - 400) for span in kept]
    )
    assert twin.decode_records(spliced, 2, -10, 500) == [records[1], records[3]]
    with pytest.raises(ValueError, match="outside"):
        twin.splice_records(payload, [(0, len(payload) + 1, 0, 0)])
