"""Varints, tagged sections and arrays of numbers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol import primitives
from penstock.protocol.wire import Malformed, Unencodable


@given(st.integers(0, (1 << 32) - 1))
def test_an_unsigned_varint_is_read_as_it_was_written(value: int) -> None:
    data = primitives.uvarint(value)
    assert primitives.read_uvarint(data, 0) == (value, len(data))
    assert primitives.read_uvarint(memoryview(b"ab" + data), 2) == (value, len(data) + 2)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16383, b"\xff\x7f"),
        (16384, b"\x80\x80\x01"),
        (2097151, b"\xff\xff\x7f"),
        (2097152, b"\x80\x80\x80\x01"),
        (268435456, b"\x80\x80\x80\x80\x01"),
        (4294967295, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_an_unsigned_varint_has_seven_bits_a_byte_lowest_first(value: int, data: bytes) -> None:
    assert primitives.uvarint(value) == data
    assert primitives.read_uvarint(data, 0) == (value, len(data))


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    data = primitives.varint(value)
    assert primitives.read_varint(data, 0) == (value, len(data))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_varlong_is_read_as_it_was_written(value: int) -> None:
    data = primitives.varlong(value)
    assert primitives.read_varlong(data, 0) == (value, len(data))


def test_zigzag_keeps_small_numbers_short() -> None:
    assert [primitives.varint(value) for value in (0, -1, 1, -64, 64)] == [b"\0", b"\1", b"\2", b"\x7f", b"\x80\x01"]


@pytest.mark.parametrize("data", [b"\xff" * 6, b"\xff\xff\xff\xff\x10", b"\xff\xff\xff\xff\xff\x01"])
def test_a_varint_over_five_bytes_or_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        primitives.read_uvarint(data, 0)


@pytest.mark.parametrize("data", [b"\xff" * 11, b"\xff" * 9 + b"\x02"])
def test_a_varlong_over_ten_bytes_or_64_bits_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        primitives.read_varlong(data, 0)


def test_a_varint_that_ends_early_reads_past_the_end() -> None:
    with pytest.raises(IndexError):
        primitives.read_uvarint(b"\x80", 0)


def test_tags_are_written_in_order_whatever_order_they_come_in() -> None:
    assert (
        primitives.write_tags([(5, b"e"), (1, b""), (300, b"xyz")])
        == b"\x03" + b"\x01\0" + b"\x05\1e" + b"\xac\x02\3xyz"
    )


def test_a_tag_cannot_be_written_twice() -> None:
    with pytest.raises(Unencodable, match="tag 1 is there twice"):
        primitives.write_tags([(1, b"a"), (1, b"b")])


def test_unknown_tags_are_kept() -> None:
    data = primitives.write_tags([(1, b"one"), (200, b"")])
    assert primitives.skim_tags(data, 1, data[0], len(data)) == (((1, b"one"), (200, b"")), len(data))


@pytest.mark.parametrize("section", [b"\x01\x00\x05abc", b"\x7f\x00\x00", b"\xff\xff\xff\xff\x0f\x00\x00"])
def test_tags_that_claim_more_than_there_is_are_refused(section: bytes) -> None:
    with pytest.raises(Malformed):
        primitives.skim_tags(section, 1, section[0], len(section))


def test_a_huge_array_is_refused_before_it_is_made() -> None:
    readers = primitives.ArrayReaders("i", 1)
    with pytest.raises(struct.error):
        readers[1 << 31](bytes(100), 0)
    assert 1 << 31 not in readers


def test_structs_are_kept_for_small_arrays_only() -> None:
    readers = primitives.ArrayReaders("i", 1)
    assert readers[3](struct.pack(">2i", 7, 8), 0) == (7, 8)
    assert readers[301](bytes(1200), 0) == (0,) * 300
    assert list(readers) == [3]


def test_arrays_and_the_numbers_around_them_are_packed_together() -> None:
    writers = primitives.ArrayWriters(("h", "B", "*i", "B"))
    assert writers[2,](1, 3, 10, 20, 0) == struct.pack(">hBiiB", 1, 3, 10, 20, 0)
