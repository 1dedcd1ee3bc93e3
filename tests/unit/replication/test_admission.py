"""Which batches may enter, with which code the others are refused, and what is done to those that enter."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import Record, check_batch, crc32c, encode_records, read_header
from penstock.model.config import TopicSettings
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    INVALID_TXN_STATE,
    MESSAGE_TOO_LARGE,
    UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode,
    Refused,
)
from penstock.model.ids import Millis
from penstock.protocol.batch import CODECS, LOG_APPEND_TIME, assemble, build_batch, read_records
from penstock.replication.admission import Admitted, RefusedRecords, admit, rebuild
from tests.properties import examples

NOW = Millis(1_700_000_000_000)
HOUR_MS = 3_600_000
PLAIN = TopicSettings.of({}, {})
COMPACTED = TopicSettings.of({"cleanup.policy": "compact"}, {})
APPEND_TIME = TopicSettings.of({"message.timestamp.type": "LogAppendTime"}, {})

NONE, GZIP, SNAPPY, LZ4, ZSTD = CODECS.values()


def records(count: int = 3, *, timestamp: int = NOW, key: bytes | None = b"k") -> list[Record]:
    return [Record(index, timestamp + index, key, b"value" * 30) for index in range(count)]


def enter(batch: bytes | None, topic: TopicSettings = PLAIN, *, version: int = 13, **more: Any) -> Admitted:
    return admit(batch, settings=topic, now=NOW, api_version=version, **more)


def refused(batch: bytes | None, topic: TopicSettings = PLAIN, *, version: int = 13) -> ErrorCode:
    with pytest.raises(Refused) as refusal:
        enter(batch, topic, version=version)
    assert refusal.value.why
    return refusal.value.error


def patched(batch: bytes, at: int, form: str, value: int, *, resum: bool = True) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(form, changed, at, value)
    if resum:
        struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


def payload_batch(payload: bytes, count: int, codec: int = NONE, base_timestamp: int = NOW) -> bytes:
    return bytes(
        assemble(
            payload,
            base_offset=0,
            leader_epoch=-1,
            attributes=codec,
            last_offset_delta=count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=NOW,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=count,
        )
    )


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_good_batch_enters_as_it_is(codec: int) -> None:
    batch = bytearray(build_batch(records(), codec=codec, producer_id=7, producer_epoch=0, base_sequence=0))
    admitted = admit(memoryview(batch), settings=PLAIN, now=NOW, api_version=7)
    assert bytes(admitted.batch) == batch
    assert admitted.header == read_header(batch)
    assert not admitted.needs_rebuild


def test_the_admitted_bytes_are_the_callers_own_and_writable() -> None:
    batch = bytearray(build_batch(records()))
    admitted = admit(memoryview(batch), settings=PLAIN, now=NOW, api_version=13)
    admitted.batch[0] = 9
    assert batch[0] == 9
    from_bytes = enter(build_batch(records()))
    from_bytes.batch[0] = 9  # a copy, since bytes cannot be stamped


def test_an_empty_or_missing_set_of_records_is_refused() -> None:
    assert refused(None) is INVALID_RECORD
    assert refused(b"") is INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_invalid_records(magic: int) -> None:
    old = struct.pack(">qiIbbii", 0, 22, 0, magic, 0, -1, 4) + b"data" + bytes(8)
    assert refused(old) is INVALID_RECORD


@pytest.mark.parametrize("magic", [3, 255])
def test_unknown_formats_are_corrupt(magic: int) -> None:
    assert refused(patched(build_batch(records()), 16, ">B", magic)) is CORRUPT_MESSAGE


def test_lengths_that_no_batch_has_are_corrupt() -> None:
    for length in (-1, 0, 13, 48):
        assert refused(patched(build_batch(records()), 8, ">i", length, resum=False)) is CORRUPT_MESSAGE


def test_a_batch_that_is_cut_short_is_no_batch() -> None:
    batch = build_batch(records())
    for size in (5, 14, 40, len(batch) - 1):
        assert refused(batch[:size]) is INVALID_RECORD


def test_zstd_needs_produce_7() -> None:
    batch = build_batch(records(), codec=ZSTD)
    assert refused(batch, version=6) is UNSUPPORTED_COMPRESSION_TYPE
    enter(batch, version=7)


def test_codecs_that_do_not_exist_are_unsupported() -> None:
    assert refused(patched(build_batch(records()), 21, ">h", 5)) is UNSUPPORTED_COMPRESSION_TYPE


def test_two_batches_are_one_too_many() -> None:
    batch = build_batch(records())
    assert refused(batch + batch) is INVALID_RECORD


def test_a_rest_that_is_no_batch_is_cut_off_or_corrupt() -> None:
    batch = build_batch(records())
    for rest in (b"abc", batch[:15], batch[:-1]):
        assert bytes(enter(batch + rest).batch) == batch
    assert refused(batch + bytes(20)) is CORRUPT_MESSAGE


def test_producers_leave_the_base_offset_at_0() -> None:
    assert refused(patched(build_batch(records()), 0, ">q", 5, resum=False)) is INVALID_RECORD


def test_a_batch_over_max_message_bytes_is_too_large_even_when_it_is_corrupt() -> None:
    batch = build_batch(records())
    topic = TopicSettings.of({"max.message.bytes": str(len(batch) - 1)}, {})
    assert refused(batch, topic) is MESSAGE_TOO_LARGE
    assert refused(patched(batch, 60, ">b", 1, resum=False), topic) is MESSAGE_TOO_LARGE
    enter(batch, TopicSettings.of({"max.message.bytes": str(len(batch))}, {}))


def test_a_wrong_checksum_is_corrupt() -> None:
    assert refused(patched(build_batch(records()), 30, ">b", 77, resum=False)) is CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("last_offset_delta", "count"), [(2, 4), (3, 3), (-1, 0), (-3, -2), (2, 2)], ids=lambda value: str(value)
)
def test_offsets_and_count_must_agree(last_offset_delta: int, count: int) -> None:
    batch = patched(build_batch(records(3), codec=LZ4), 23, ">i", last_offset_delta)
    assert refused(patched(batch, 57, ">i", count)) is INVALID_RECORD
    plain = patched(build_batch(records(3)), 23, ">i", last_offset_delta)
    assert refused(patched(plain, 57, ">i", count)) is INVALID_RECORD


def test_control_records_are_not_for_clients() -> None:
    assert refused(build_batch(records(1), control=True)) is INVALID_RECORD


def test_an_idempotent_batch_has_a_sequence() -> None:
    assert refused(build_batch(records(), producer_id=4, producer_epoch=0)) is INVALID_RECORD


def test_transactions_enter_where_they_are_served() -> None:
    batch = build_batch(records(), transactional=True, producer_id=4, producer_epoch=0, base_sequence=0)
    assert refused(batch) is INVALID_TXN_STATE
    assert not enter(batch, transactions_served=True).needs_rebuild


def test_records_that_do_not_parse_are_refused_although_the_checksum_is_good() -> None:
    assert refused(payload_batch(b"\x02\x00", 1)) is INVALID_RECORD
    assert refused(payload_batch(b"\x02\x00", 1, codec=GZIP), COMPACTED) is INVALID_RECORD


def test_a_compressed_blob_that_does_not_unpack_is_refused_where_it_is_opened() -> None:
    broken = patched(build_batch(records(), codec=GZIP), 61, ">h", 0)
    assert refused(broken, COMPACTED) is INVALID_RECORD
    enter(broken)  # a closed batch is believed: the documented difference


# --- keys ---


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_compacted_topic_names_every_record_without_a_key(codec: int) -> None:
    mixed = [Record(0, NOW, b"k", b""), Record(1, NOW, None, b""), Record(2, NOW, b"", b""), Record(3, NOW, None, None)]
    with pytest.raises(RefusedRecords) as refusal:
        enter(build_batch(mixed, codec=codec), COMPACTED)
    assert refusal.value.error is INVALID_RECORD
    assert [index for index, _ in refusal.value.record_errors] == [1, 3]
    assert not enter(build_batch(records(), codec=codec), COMPACTED).needs_rebuild


# --- timestamps ---


@pytest.mark.parametrize("codec", [NONE, ZSTD], ids=["none", "zstd"])
def test_timestamps_too_far_ahead_are_named(codec: int) -> None:
    late = [Record(0, NOW, b"", b""), Record(1, NOW + HOUR_MS + 1, b"", b""), Record(2, NOW + HOUR_MS, b"", b"")]
    with pytest.raises(RefusedRecords) as refusal:
        enter(build_batch(late, codec=codec))
    assert refusal.value.error is INVALID_TIMESTAMP
    assert [index for index, _ in refusal.value.record_errors] == [1]
    enter(build_batch([late[0], late[2]._replace(offset=1)], codec=codec))


@pytest.mark.parametrize("codec", [NONE, ZSTD], ids=["none", "zstd"])
def test_timestamps_too_old_are_named_where_the_topic_bounds_them(codec: int) -> None:
    old = [Record(0, NOW - 5_001, b"", b""), Record(1, NOW - 5_000, b"", b""), Record(2, -1, b"", b"")]
    with pytest.raises(RefusedRecords) as refusal:
        enter(build_batch(old, codec=codec), TopicSettings.of({"message.timestamp.before.max.ms": "5000"}, {}))
    assert [index for index, _ in refusal.value.record_errors] == [0]
    enter(build_batch(old, codec=codec))


def test_timestamps_outweigh_keys_in_the_answer() -> None:
    bad = [Record(0, NOW, None, b""), Record(1, NOW + 2 * HOUR_MS, b"k", b"")]
    with pytest.raises(RefusedRecords) as refusal:
        enter(build_batch(bad), COMPACTED)
    assert refusal.value.error is INVALID_TIMESTAMP
    assert [index for index, _ in refusal.value.record_errors] == [0, 1]


def test_no_timestamp_beyond_64_bits_enters() -> None:
    topic = TopicSettings.of({"message.timestamp.after.max.ms": str(2**63 - 1)}, {})
    payload = encode_records([Record(0, 2**63 - 1, b"", b"")], 0, 0)
    assert refused(payload_batch(bytes(payload), 1, base_timestamp=10), topic) is INVALID_TIMESTAMP


def test_claiming_log_append_time_is_refused() -> None:
    batch = build_batch(records(), timestamp_type=1)
    assert refused(batch) is INVALID_TIMESTAMP
    assert refused(batch, APPEND_TIME) is INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_log_append_time_is_written_into_the_header(codec: int) -> None:
    admitted = enter(build_batch(records(timestamp=5), codec=codec), APPEND_TIME)
    header, _ = check_batch(admitted.batch, 0)
    assert header == admitted.header
    assert (header.attributes, header.max_timestamp, header.base_timestamp) == (codec | LOG_APPEND_TIME, NOW, 5)
    assert {record.timestamp for record in read_records(admitted.batch)} == {NOW}


def test_a_wrong_largest_timestamp_is_corrected_where_the_records_are_known() -> None:
    for codec, topic in ((NONE, PLAIN), (LZ4, COMPACTED)):
        admitted = enter(patched(build_batch(records(), codec=codec), 35, ">q", 12), topic)
        header, _ = check_batch(admitted.batch, 0)
        assert header == admitted.header
        assert header.max_timestamp == NOW + 2


def test_a_header_that_looks_too_late_opens_the_batch() -> None:
    lying = patched(build_batch(records(), codec=LZ4), 35, ">q", NOW + 2 * HOUR_MS)
    assert enter(lying).header.max_timestamp == NOW + 2


# --- offsets ---


def test_gaps_in_offsets_are_refused_plain_and_rewritten_compressed() -> None:
    gappy = bytes(encode_records([Record(0, NOW, b"a", b"1"), Record(5, NOW, b"b", b"2")], 0, NOW))
    assert refused(payload_batch(gappy, 2)) is INVALID_RECORD
    admitted = enter(payload_batch(gappy, 2, codec=SNAPPY), COMPACTED)
    header, _ = check_batch(admitted.batch, 0)
    assert header.codec == SNAPPY
    assert [record.offset for record in read_records(admitted.batch)] == [0, 1]


# --- recompression ---


@pytest.mark.parametrize("source", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_a_codec_packs_anew_off_the_loop(source: int, target: str) -> None:
    topic = TopicSettings.of({"compression.type": target}, {})
    batch = build_batch(records(), codec=source, producer_id=9, producer_epoch=1, base_sequence=4)
    admitted = enter(batch, topic)
    same = source == CODECS.get(target, NONE)
    assert admitted.needs_rebuild is not same
    if not same:
        admitted = rebuild(admitted, topic, NOW)
    header, _ = check_batch(admitted.batch, 0)
    assert header == admitted.header
    assert header.codec == CODECS.get(target, NONE)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 4)
    assert read_records(admitted.batch) == records()


def test_a_rebuilt_batch_takes_the_time_and_keys_of_its_topic() -> None:
    topic = TopicSettings.of({"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"}, {})
    rebuilt = rebuild(enter(build_batch(records(), codec=GZIP), topic), topic, Millis(NOW + 5))
    assert (rebuilt.header.max_timestamp, rebuilt.header.attributes) == (NOW + 5, ZSTD | LOG_APPEND_TIME)
    keyless = enter(
        build_batch(records(key=None), codec=GZIP),
        both := TopicSettings.of({"compression.type": "zstd", "cleanup.policy": "compact"}, {}),
    )
    with pytest.raises(RefusedRecords):
        rebuild(keyless, both, NOW)


def test_a_batch_that_grows_over_its_limit_is_too_large() -> None:
    batch = build_batch(records(50), codec=ZSTD)
    topic = TopicSettings.of({"compression.type": "uncompressed", "max.message.bytes": str(len(batch) + 10)}, {})
    with pytest.raises(Refused) as refusal:
        rebuild(enter(batch, topic), topic, NOW)
    assert refusal.value.error is MESSAGE_TOO_LARGE


def test_cve_2023_34455_a_bomb_is_refused() -> None:
    bomb = build_batch([Record(0, NOW, b"k", bytes(80 << 20))], codec=ZSTD)
    assert refused(bomb, COMPACTED) is INVALID_RECORD


def test_a_large_compressed_batch_is_opened_off_the_loop() -> None:
    noise = b"".join(crc32c(struct.pack(">I", i)).to_bytes(4, "big") for i in range(40_000))
    batch = build_batch([Record(0, NOW, b"k", noise)], codec=LZ4)
    admitted = enter(batch, COMPACTED)
    assert admitted.needs_rebuild
    assert bytes(rebuild(admitted, COMPACTED, NOW).batch) == batch


@settings(max_examples=examples(150))
@given(
    st.sampled_from([NONE, NONE, GZIP, LZ4]),
    st.sampled_from([PLAIN, COMPACTED, APPEND_TIME]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.booleans(),
    st.integers(3, 13),
)
def test_whatever_the_bytes_a_batch_enters_whole_or_is_refused(
    codec: int, topic: TopicSettings, changes: list[tuple[int, int]], resum: bool, version: int
) -> None:
    batch = bytearray(build_batch(records(), codec=codec))
    for at, value in changes:
        batch[at % len(batch)] = value
    if resum:
        struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    try:
        admitted = enter(bytes(batch), topic, version=version)
    except Refused:
        return
    header, facts = check_batch(admitted.batch, 0)
    assert header == admitted.header
    assert header.size == len(admitted.batch)
    assert facts is None or len(read_records(admitted.batch)) == header.record_count
