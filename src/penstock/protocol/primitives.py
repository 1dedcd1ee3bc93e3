"""What compiled codecs call instead of inlining: long varints, tagged sections, arrays of numbers.

Positions are plain ints, buffers are bytes or memoryviews. Reading past the end raises IndexError or struct.error here;
`codec.decode` turns both into `Malformed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from struct import Struct
from typing import Any

from penstock.protocol.wire import Malformed, Unencodable

STRING_BYTES_MAX = 0x7FFF

_two_bytes = Struct("BB").pack
_three_bytes = Struct("BBB").pack


def read_uvarint(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of up to five bytes and the position after it. Unrolled: it is read once per batch."""
    byte = buf[position]
    if byte < 128:
        return byte, position + 1
    value = byte & 0x7F
    byte = buf[position + 1]
    if byte < 128:
        return value | byte << 7, position + 2
    value |= (byte & 0x7F) << 7
    byte = buf[position + 2]
    if byte < 128:
        return value | byte << 14, position + 3
    value |= (byte & 0x7F) << 14
    byte = buf[position + 3]
    if byte < 128:
        return value | byte << 21, position + 4
    value |= (byte & 0x7F) << 21
    byte = buf[position + 4]
    if byte > 15:
        raise Malformed("an unsigned varint is over 32 bits")
    return value | byte << 28, position + 5


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
    """`value` as an unsigned varint. Unrolled for sizes up to 2 MB: it is written once per batch."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return _two_bytes(value & 0x7F | 0x80, value >> 7)
    if value < 0x200000:
        return _three_bytes(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    out = bytearray()
    while value > 0x7F:
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


class ArrayReaders(dict[int, Callable[..., tuple[Any, ...]]]):
    """Count prefix of an array of numbers -> the struct that reads them. The prefix is `bias` above the count.

    Such arrays are nearly always replica lists, so the structs of small counts are kept. A count that no buffer can
    hold is harmless: the struct compares its size with the buffer before it makes anything.
    """

    def __init__(self, code: str, bias: int) -> None:
        self._code = code
        self._bias = bias

    def __missing__(self, prefix: int) -> Callable[..., tuple[Any, ...]]:
        count = prefix - self._bias
        if count < 0:
            raise Malformed("an array is null that may not be")
        read = Struct(f">{count}{self._code}").unpack_from
        if count < _KEPT_COUNT:
            self[prefix] = read
        return read


@cache
def readers_of(code: str, bias: int) -> ArrayReaders:
    return ArrayReaders(code, bias)


class ArrayWriters(dict[tuple[int, ...], Callable[..., bytes]]):
    """Counts of arrays -> the struct that packs them with the fixed-width values around them.

    `pieces` are struct codes; an `*` before one marks an array of it, whose count comes from the key.
    """

    def __init__(self, pieces: tuple[str, ...]) -> None:
        self._pieces = pieces

    def __missing__(self, counts: tuple[int, ...]) -> Callable[..., bytes]:
        left = iter(counts)
        codes = [f"{next(left)}{piece[1:]}" if piece[0] == "*" else piece for piece in self._pieces]
        pack = Struct(">" + "".join(codes)).pack
        if len(self) < _KEPT_WRITERS and max(counts) < _KEPT_COUNT:
            self[counts] = pack
        return pack


_KEPT_COUNT = 64
_KEPT_WRITERS = 256
