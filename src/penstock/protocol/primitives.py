"""What compiled codecs call instead of inlining: long varints, tagged sections, arrays of numbers.

Positions are plain ints, buffers are bytes or memoryviews. Reading past the end raises IndexError or struct.error here;
`codec.decode` turns both into `Malformed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any

from penstock.protocol.wire import Malformed, Unencodable

STRING_BYTES_MAX = 0x7FFF


def read_uvarint(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of up to five bytes and the position after it."""
    byte = buf[position]
    position += 1
    if byte < 128:
        return byte, position
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                raise Malformed("an unsigned varint is over 32 bits")
            return value, position
    raise Malformed("an unsigned varint is longer than five bytes")


def long_string(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """As `read_uvarint` for the length of a compact string (length + 1), which Kafka caps at 32767 bytes."""
    value, position = read_uvarint(buf, position)
    if value > STRING_BYTES_MAX + 1:
        raise Malformed(f"a string of {value - 1} bytes; {STRING_BYTES_MAX} are allowed")
    return value, position


def read_varint(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint of up to five bytes and the position after it."""
    raw, position = read_uvarint(buf, position)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint of up to ten bytes and the position after it."""
    value = shift = 0
    while True:
        byte = buf[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise Malformed("a varint is longer than ten bytes")
    if value > 0xFFFFFFFFFFFFFFFF:
        raise Malformed("a varint is over 64 bits")
    return (value >> 1) ^ -(value & 1), position


def uvarint(value: int) -> bytes:
    """`value` as an unsigned varint."""
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """`value` as a zigzag varint of 32 bits."""
    return uvarint((value << 1 ^ value >> 31) & 0xFFFFFFFF)


def varlong(value: int) -> bytes:
    """`value` as a zigzag varint of 64 bits."""
    return uvarint((value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF)


def string_size(size: int) -> bytes:
    """The compact length prefix of a string of `size` bytes."""
    if size > STRING_BYTES_MAX:
        raise Unencodable(f"a string of {size} bytes; {STRING_BYTES_MAX} are allowed")
    return uvarint(size + 1)


def skim_tags(
    buf: bytes | memoryview, position: int, count: int, end: int
) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """`count` tagged fields, none of which the reader knows: kept as they are."""
    if count > 127:
        count, position = read_uvarint(buf, position - 1)
    if count > end - position:
        raise Malformed(f"{count} tagged fields in {end - position} bytes")
    tags = []
    for _ in range(count):
        tag, stop, position = open_tag(buf, position, end)
        tags.append((tag, bytes(buf[position:stop])))
        position = stop
    return tuple(tags), position


def open_tag(buf: bytes | memoryview, position: int, end: int) -> tuple[int, int, int]:
    """(tag, end of its data, start of its data)."""
    tag, position = read_uvarint(buf, position)
    size, position = read_uvarint(buf, position)
    if size > end - position:
        raise Malformed(f"tagged field {tag} claims {size} bytes of {end - position}")
    return tag, position + size, position


def write_tags(tags: Iterable[tuple[int, bytes | bytearray]]) -> bytes:
    """A tagged section, in ascending order of tags as the protocol wants it."""
    ordered = sorted(tags, key=_tag_of)
    out = bytearray(uvarint(len(ordered)))
    previous = -1
    for tag, data in ordered:
        if tag == previous:
            raise Unencodable(f"tag {tag} is there twice")
        previous = tag
        out += uvarint(tag)
        out += uvarint(len(data))
        out += data
    return bytes(out)


def _tag_of(entry: tuple[int, bytes | bytearray]) -> int:
    return entry[0]


# Arrays of numbers are nearly always replica lists: the first few lengths get a ready struct each.
_READY = 16


def array_reader(code: str) -> Callable[[bytes | memoryview, int, int], tuple[Any, ...]]:
    """A function (buf, position, count) -> the numbers."""
    ready = [Struct(f">{count}{code}").unpack_from for count in range(_READY)]

    def read(buf: bytes | memoryview, position: int, count: int) -> tuple[Any, ...]:
        if count < _READY:
            return ready[count](buf, position)
        return Struct(f">{count}{code}").unpack_from(buf, position)

    return read


def array_writer(code: str, *, compact: bool) -> Callable[[Sequence[Any]], bytes]:
    """A function (numbers) -> their count prefix and the numbers."""
    bias = 1 if compact else 0
    prefix = "B" if compact else "i"
    ready = [Struct(f">{prefix}{count}{code}").pack for count in range(_READY)]

    def write(values: Sequence[Any]) -> bytes:
        count = len(values)
        if count < _READY:
            return ready[count](count + bias, *values)
        head = uvarint(count + 1) if compact else Struct(">i").pack(count)
        return head + Struct(f">{count}{code}").pack(*values)

    return write


ARRAY_READERS: dict[str, Callable[[bytes | memoryview, int, int], tuple[Any, ...]]] = {}
ARRAY_WRITERS: dict[tuple[str, bool], Callable[[Sequence[Any]], bytes]] = {}


def reader_of(code: str) -> Callable[[bytes | memoryview, int, int], tuple[Any, ...]]:
    if code not in ARRAY_READERS:
        ARRAY_READERS[code] = array_reader(code)
    return ARRAY_READERS[code]


def writer_of(code: str, *, compact: bool) -> Callable[[Sequence[Any]], bytes]:
    if (code, compact) not in ARRAY_WRITERS:
        ARRAY_WRITERS[code, compact] = array_writer(code, compact=compact)
    return ARRAY_WRITERS[code, compact]
