"""Whole batches, judged by kafka-python where it can."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import Record, check_batch, decode_records, read_header
from penstock.protocol import batch as batches
from penstock.protocol.batch import CODECS, build_batch, payload_of, read_records, rebuild_batch
from penstock.protocol.wire import Malformed
from tests.properties import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas by a deprecated call
    from kafka.record import MemoryRecords

RECORDS = [
    Record(100, 5_000, b"a", b"one", (("trace", b"\x01"), ("none", None))),
    Record(101, 5_010, None, b"two"),
    Record(102, 4_990, b"a", None),
]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_records_come_back_from_a_batch(codec: int) -> None:
    batch = build_batch(RECORDS, base_offset=100, codec=codec)
    header, _ = check_batch(batch, 0)
    assert (header.base_timestamp, header.max_timestamp, header.last_offset_delta) == (5_000, 5_010, 2)
    assert (header.codec, header.record_count, header.producer_id) == (codec, 3, -1)
    assert read_records(batch) == RECORDS


@settings(max_examples=examples(25))
@given(
    st.sampled_from(sorted(set(CODECS.values()) - {CODECS["snappy"]})),  # it knows only another snappy library
    st.lists(
        st.tuples(
            st.integers(0, 1 << 45),
            st.none() | st.binary(max_size=30),
            st.none() | st.binary(max_size=300),
            st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=2).map(tuple),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_kafka_python_reads_the_same_records(codec: int, parts: list[tuple]) -> None:  # type: ignore[type-arg]
    records = [Record(7 + index, *part) for index, part in enumerate(parts)]
    foreign = MemoryRecords(build_batch(records, base_offset=7, codec=codec)).next_batch()
    assert foreign.validate_crc()
    seen = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in foreign]
    assert seen == records


def test_the_fields_of_a_header_are_what_was_asked_for() -> None:
    header = read_header(
        build_batch(
            RECORDS,
            base_offset=90,
            leader_epoch=4,
            producer_id=77,
            producer_epoch=2,
            base_sequence=11,
            transactional=True,
            timestamp_type=1,
        )
    )
    assert (header.base_offset, header.last_offset_delta, header.leader_epoch) == (90, 12, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 2, 11)
    assert header.attributes == batches.TRANSACTIONAL | batches.LOG_APPEND_TIME


def test_log_append_time_is_the_time_of_every_record() -> None:
    assert [r.timestamp for r in read_records(build_batch(RECORDS, base_offset=100, timestamp_type=1))] == [5_010] * 3


def test_a_plain_payload_is_a_view_and_not_a_copy() -> None:
    batch = build_batch(RECORDS, base_offset=100)
    payload = payload_of(batch, read_header(batch))
    assert isinstance(payload, memoryview)
    assert payload.obj is batch


def test_a_payload_over_its_limit_is_malformed() -> None:
    batch = build_batch([Record(0, 0, None, bytes(10_000))], codec=CODECS["zstd"])
    with pytest.raises(Malformed):
        payload_of(batch, read_header(batch), 5_000)


def test_rebuilding_changes_only_what_is_named() -> None:
    batch = build_batch(
        RECORDS, base_offset=100, codec=CODECS["gzip"], producer_id=5, producer_epoch=0, base_sequence=3
    )
    old = read_header(batch)
    rebuilt = rebuild_batch(old, payload_of(batch, old), codec=CODECS["lz4"])
    new, _ = check_batch(rebuilt, 0)
    assert new._replace(size=0, crc=0, attributes=0) == old._replace(size=0, crc=0, attributes=0)
    assert new.codec == CODECS["lz4"]
    assert read_records(rebuilt) == RECORDS


def test_an_empty_batch_can_be_assembled_and_read() -> None:
    old = read_header(build_batch(RECORDS, base_offset=100, codec=CODECS["gzip"]))
    empty = rebuild_batch(old, b"", codec=0, base_timestamp=-1, record_count=0)
    header, facts = check_batch(empty, 0)
    assert (header.size, header.last_offset, header.record_count) == (61, 102, 0)
    assert facts is not None
    assert read_records(empty) == []


def test_the_delete_horizon_is_told_only_when_it_is_set() -> None:
    batch = build_batch(RECORDS, base_offset=100)
    header = read_header(batch)
    assert batches.delete_horizon_of(header) is None
    marked = rebuild_batch(header, b"", attributes=batches.DELETE_HORIZON, base_timestamp=9_000, record_count=0)
    assert batches.delete_horizon_of(read_header(marked)) == 9_000


def test_relative_offsets_are_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        build_batch([Record(0, 0, None, b"")], base_offset=100)


def test_a_payload_decodes_with_the_kernels() -> None:
    batch = build_batch(RECORDS, base_offset=100, codec=CODECS["snappy"])
    header = read_header(batch)
    assert decode_records(payload_of(batch, header), 3, 100, 5_000) == RECORDS
