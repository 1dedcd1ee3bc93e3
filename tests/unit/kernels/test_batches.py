"""Headers, checksums and whole batches."""

from __future__ import annotations

import struct
from types import ModuleType

import pytest

from penstock.kernels import HEADER_BYTES, BadBatch, BadCrc, BadRecord, BatchHeader, Record, RecordFacts, crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")


def batch_of(payload: bytes, count: int, *, attributes: int = 0, magic: int = 2) -> bytearray:
    batch = bytearray(HEADER_BYTES) + payload
    HEADER.pack_into(batch, 0, 7, len(batch) - 12, 3, magic, 0, attributes, count - 1, 1_000, 1_002, 9, 1, 5, count)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


@pytest.fixture
def three(twin: ModuleType) -> bytearray:
    records = [
        Record(7, 1_000, b"a", b"1"),
        Record(8, 1_002, None, None, (("h", b"x"), ("n", None))),
        Record(9, 999, b"", b""),
    ]
    return batch_of(bytes(twin.encode_records(records, 7, 1_000)), 3)


def test_an_unfilled_buffer_has_its_size_and_can_be_written(twin: ModuleType) -> None:
    buffer = twin.unfilled(5)
    buffer[:] = b"hello"
    assert buffer == bytearray(b"hello")
    assert (len(twin.unfilled(0)), len(twin.unfilled(1 << 20))) == (0, 1 << 20)
    with pytest.raises(ValueError, match="negative"):
        twin.unfilled(-1)


def test_the_check_value_of_crc32c_comes_out(twin: ModuleType) -> None:
    assert twin.crc32c(b"123456789") == 0xE3069283


def test_a_checksum_continues_from_a_checksum(twin: ModuleType) -> None:
    assert twin.crc32c(memoryview(b"6789"), twin.crc32c(bytearray(b"12345"))) == 0xE3069283


@pytest.mark.parametrize("fastest_allowed", [0, 1, 2])
def test_every_crc_method_agrees_at_every_length_and_alignment(fastest_allowed: int) -> None:
    compiled = pytest.importorskip("penstock.kernels._compiled")
    from penstock.kernels import _pure

    data = memoryview(bytes((i * i + 7) % 251 for i in range(20_000)))
    try:
        compiled.use_crc_method(fastest_allowed)
        for size in [*range(70), 767, 768, 1_023, 1_024, 1_100, 1_345, 6_143, 6_144, 6_200, 12_345, 19_900]:
            for start in (0, 1, 7, 63):
                assert compiled.crc32c(data[start : start + size]) == _pure.crc32c(data[start : start + size])
    finally:
        compiled.use_crc_method(2)


def test_a_header_is_read_field_by_field(twin: ModuleType, three: bytearray) -> None:
    crc = int.from_bytes(three[17:21], "big")
    expected = BatchHeader(7, len(three), 3, 2, crc, 0, 2, 1_000, 1_002, 9, 1, 5, 3)
    assert twin.read_header(b"xx" + three, 2) == expected
    assert twin.read_header(three).last_offset == 9


def test_sixty_bytes_are_no_header(twin: ModuleType, three: bytearray) -> None:
    for buf, position in ((three[:60], 0), (three, len(three) - 60), (three, -1), (b"", 0)):
        with pytest.raises(BadBatch):
            twin.read_header(buf, position)


def test_one_call_checks_header_checksum_and_records(twin: ModuleType, three: bytearray) -> None:
    header, facts = twin.check_batch(memoryview(b"ab" + three + b"tail"), 2)
    assert header == twin.read_header(three)
    assert facts == RecordFacts(-1, 2, 1, 1, True)
    assert type(header) is BatchHeader
    assert type(facts) is RecordFacts


def test_a_compressed_batch_has_no_record_facts(twin: ModuleType) -> None:
    header, facts = twin.check_batch(batch_of(b"\xff\xff", 3, attributes=3), 0)
    assert (header.codec, facts) == (3, None)


def test_each_kind_of_damage_has_its_own_exception(twin: ModuleType, three: bytearray) -> None:
    flipped = bytearray(three)
    flipped[-1] ^= 1
    with pytest.raises(BadCrc) as refused:
        twin.check_batch(flipped, 0)
    assert refused.value.stored == int.from_bytes(three[17:21], "big")
    with pytest.raises(BadBatch):
        twin.check_batch(three[:-1], 0)
    with pytest.raises(BadBatch, match="format 1"):
        twin.check_batch(batch_of(b"", 1, magic=1), 0)
    with pytest.raises(BadRecord, match="record 3: its length"):
        twin.check_batch(batch_of(bytes(three[HEADER_BYTES:]), 4), 0)
    with pytest.raises(BadRecord, match="left over after"):
        twin.check_batch(batch_of(bytes(three[HEADER_BYTES:]), 2), 0)
    with pytest.raises(BadRecord, match="count is negative"):
        twin.check_batch(batch_of(bytes(three[HEADER_BYTES:]), -1), 0)


def test_a_length_below_a_header_is_a_bad_batch(twin: ModuleType, three: bytearray) -> None:
    for length in (0, 48, -13, -(1 << 31)):
        struct.pack_into(">i", three, 8, length)
        with pytest.raises(BadBatch):
            twin.check_batch(three, 0)
        with pytest.raises(BadBatch):
            twin.scan_batches(three, 0)


def test_crc_holds_only_for_the_bytes_that_were_summed(twin: ModuleType, three: bytearray) -> None:
    assert twin.crc_holds(b"x" + three, 1, len(three))
    three[0] ^= 1  # outside the checksum
    assert twin.crc_holds(three, 0, len(three))
    three[21] ^= 1
    assert not twin.crc_holds(three, 0, len(three))
    with pytest.raises(BadBatch):
        twin.crc_holds(three, 0, len(three) + 1)


def test_a_scan_stops_at_the_first_incomplete_batch(twin: ModuleType, three: bytearray) -> None:
    size = len(three)
    found = twin.scan_batches(b"." + three + three + three[:-1], 1)
    assert found == [(1, twin.read_header(three)), (1 + size, twin.read_header(three))]
    assert twin.scan_batches(three[:30]) == []
    assert twin.scan_batches(b"", 5) == []


def test_a_scan_refuses_another_format(twin: ModuleType, three: bytearray) -> None:
    with pytest.raises(BadBatch, match="format 1"):
        twin.scan_batches(three + batch_of(b"", 1, magic=1))


def test_a_stamp_leaves_the_checksum_good(twin: ModuleType, three: bytearray) -> None:
    twin.stamp(memoryview(three), 0, 1 << 40, 12)
    header, _ = twin.check_batch(three, 0)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 12)
    with pytest.raises(BadBatch):
        twin.stamp(three, len(three) - 60, 0, 0)


def test_retiming_writes_a_new_checksum(twin: ModuleType, three: bytearray) -> None:
    crc = twin.retime(three, 0, len(three), 8, 5_000)
    header, _ = twin.check_batch(three, 0)
    assert (header.attributes, header.max_timestamp, header.crc) == (8, 5_000, crc)


def test_a_batch_that_cannot_be_written_to_is_not_stamped(twin: ModuleType, three: bytearray) -> None:
    with pytest.raises((BufferError, TypeError)):
        twin.stamp(bytes(three), 0, 1, 1)
