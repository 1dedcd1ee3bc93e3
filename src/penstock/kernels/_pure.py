"""The kernels in plain Python: they serve without a compiler, and the compiled ones are tested against them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from fastcrc.crc32 import iscsi

from penstock.kernels.shapes import (
    CODEC_MASK,
    COUNT,
    HEADER_BYTES,
    HEADER_COUNT,
    HEADER_KEY,
    HEADER_VALUE,
    KEY,
    KEY_LENGTH,
    LEFT_AFTER,
    LEFT_INSIDE,
    LENGTH,
    OFFSET,
    REASONS,
    TIMESTAMP,
    TOO_LONG,
    VALUE,
    VALUE_LENGTH,
    BadBatch,
    BadCrc,
    BadRecord,
    BatchHeader,
    Buffer,
    PlainProduce,
    Record,
    RecordFacts,
    RecordSpan,
)

IMPLEMENTATION: Final = "pure"

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_STAMP_OFFSET: Final = struct.Struct(">q")
_STAMP_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_BODY_AT: Final = 21
_MAX_AT: Final = 35
_I31: Final = 1 << 31
I63: Final = 1 << 63
_U64: Final = (1 << 64) - 1


def unfilled(size: int) -> bytearray:
    """A buffer whose bytes are anything until they are written. For reading into: zeros would be written in vain."""
    return bytearray(size)


def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C of `data`, continuing from `value`."""
    return iscsi(data, value)


def read_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, believed as it stands; BadBatch when fewer than 61 bytes are there."""
    if position < 0 or len(buf) - position < HEADER_BYTES:
        raise BadBatch(f"a batch header needs {HEADER_BYTES} bytes")
    offset, length, *others = _HEADER.unpack_from(buf, position)
    return BatchHeader(offset, length + 12, *others)


def _whole(buf: Buffer, position: int, size: int) -> None:
    if position < 0 or size < HEADER_BYTES or len(buf) - position < size:
        raise BadBatch(f"a batch of {size} bytes does not fit here")


def _computed(buf: Buffer, position: int, size: int) -> int:
    with memoryview(buf) as whole, whole[position + _BODY_AT : position + size] as body:
        return iscsi(body)


def crc_holds(buf: Buffer, position: int, size: int) -> bool:
    """Whether the batch of `size` bytes at `position` has the checksum that it claims."""
    _whole(buf, position, size)
    (stored,) = _CRC.unpack_from(buf, position + _CRC_AT)
    return bool(stored == _computed(buf, position, size))


def check_batch(buf: Buffer, position: int = 0) -> tuple[BatchHeader, RecordFacts | None]:
    """Header, size, checksum and, when they are not compressed, the records of one batch, in one call.

    BadBatch, BadCrc or BadRecord says which of them is wrong. The facts are None for a compressed batch.
    """
    header = read_header(buf, position)
    if header.magic != 2:
        raise BadBatch(f"batch format {header.magic} is not 2")
    _whole(buf, position, header.size)
    computed = _computed(buf, position, header.size)
    if computed != header.crc:
        raise BadCrc(header.crc, computed)
    if header.attributes & CODEC_MASK:
        return header, None
    with memoryview(buf) as whole:
        payload = bytes(whole[position + HEADER_BYTES : position + header.size])
    return header, walk_records(payload, header.record_count)


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A zigzag int32 and where it ends; the end is -1 when it is cut short or too large."""
    raw = shift = 0
    while at < end and shift < 35:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (0, -1) if raw >> 32 else ((raw >> 1) ^ -(raw & 1), at)
        shift += 7
    return 0, -1


def _varlong(data: bytes, at: int, end: int) -> tuple[int, int]:
    raw = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (0, -1) if raw >> 64 else ((raw >> 1) ^ -(raw & 1), at)
        shift += 7
    return 0, -1


class RecordWalker:
    """Goes over the records of one payload; `next` leaves the parts of one record in its fields."""

    __slots__ = (
        "at",
        "data",
        "end",
        "header_count",
        "headers_at",
        "index",
        "key",
        "offset_delta",
        "rest",
        "timestamp_delta",
        "value",
    )

    def __init__(self, payload: Buffer, count: int) -> None:
        self.data = payload if isinstance(payload, bytes) else bytes(payload)
        self.at, self.index = 0, -1
        if count < 0:
            raise BadRecord(0, REASONS[COUNT])

    def _bad(self, reason: int) -> BadRecord:
        return BadRecord(self.index, REASONS[reason])

    def next(self) -> None:
        data = self.data
        self.index += 1
        length, at = _varint(data, self.at, len(data))
        if at < 0 or length < 0:
            raise self._bad(LENGTH)
        end = at + length
        if end > len(data):
            raise self._bad(TOO_LONG)
        self.timestamp_delta, at = _varlong(data, at + 1, end)  # past the attributes, which mean nothing yet
        if at < 0:
            raise self._bad(TIMESTAMP)
        self.offset_delta, at = _varint(data, at, end)
        if at < 0:
            raise self._bad(OFFSET)
        self.rest = at
        self.key, at = self._bytes(at, end, KEY_LENGTH, KEY)
        self.value, at = self._bytes(at, end, VALUE_LENGTH, VALUE)
        count, at = _varint(data, at, end)
        if at < 0 or count < 0:
            raise self._bad(HEADER_COUNT)
        self.header_count, self.headers_at = count, at
        for _ in range(count):
            size, at = _varint(data, at, end)
            if at < 0 or size < 0 or at + size > end:
                raise self._bad(HEADER_KEY)
            _, at = self._bytes(at + size, end, HEADER_VALUE, HEADER_VALUE)
        if at != end:
            raise self._bad(LEFT_INSIDE)
        self.at = self.end = end

    def _bytes(self, at: int, end: int, bad_length: int, bad_end: int) -> tuple[slice | None, int]:
        size, at = _varint(self.data, at, end)
        if at < 0 or size < -1:
            raise self._bad(bad_length)
        if size < 0:
            return None, at
        if at + size > end:
            raise self._bad(bad_end)
        return slice(at, at + size), at + size

    def finish(self) -> None:
        if self.at != len(self.data):
            self.index += 1
            raise self._bad(LEFT_AFTER)

    def taken(self, where: slice | None) -> bytes | None:
        return None if where is None else self.data[where]

    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        found = []
        at = self.headers_at
        for _ in range(self.header_count):
            size, at = _varint(self.data, at, self.end)
            key = self.data[at : at + size].decode("utf-8", "surrogateescape")
            value, at = self._bytes(at + size, self.end, HEADER_VALUE, HEADER_VALUE)
            found.append((key, self.taken(value)))
        return tuple(found)


def walk_records(payload: Buffer, count: int) -> RecordFacts:
    """Checks `count` uncompressed records that must fill `payload` exactly; BadRecord says what is wrong."""
    walker = RecordWalker(payload, count)
    smallest = largest = null_keys = 0
    largest_at, dense = -1, True
    for index in range(count):
        walker.next()
        delta = walker.timestamp_delta
        if index == 0:
            smallest = largest = delta
            largest_at = 0
        elif delta < smallest:
            smallest = delta
        elif delta > largest:
            largest, largest_at = delta, index
        null_keys += walker.key is None
        dense = dense and walker.offset_delta == index
    walker.finish()
    return RecordFacts(smallest, largest, largest_at, null_keys, dense)


def wrapped(value: int) -> int:
    """As 64-bit arithmetic has it: a hostile delta must not make a number that no field can hold."""
    return ((value + I63) & _U64) - I63


def decode_records(
    payload: Buffer, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> list[Record]:
    """The records of an uncompressed payload. `append_time` replaces every timestamp (LogAppendTime batches)."""
    walker = RecordWalker(payload, count)
    found = []
    for _ in range(count):
        walker.next()
        timestamp = wrapped(base_timestamp + walker.timestamp_delta) if append_time is None else append_time
        found.append(
            Record(
                wrapped(base_offset + walker.offset_delta),
                timestamp,
                walker.taken(walker.key),
                walker.taken(walker.value),
                walker.headers(),
            )
        )
    walker.finish()
    return found


def index_records(payload: Buffer, count: int) -> list[RecordSpan]:
    """Where each record lies, with its key: enough to drop, keep or renumber records without decoding them."""
    walker = RecordWalker(payload, count)
    found = []
    for _ in range(count):
        walker.next()
        found.append(
            RecordSpan(
                walker.rest,
                walker.end,
                walker.offset_delta,
                walker.timestamp_delta,
                walker.taken(walker.key),
                walker.value is not None,
            )
        )
    walker.finish()
    return found


def put_varint(out: bytearray, value: int) -> None:
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


def put_head(out: bytearray, timestamp_delta: int, offset_delta: int) -> None:
    if not -I63 <= timestamp_delta < I63:
        raise ValueError("a timestamp delta needs more than 64 bits")
    if not -_I31 <= offset_delta < _I31:
        raise ValueError("an offset delta needs more than 32 bits")
    out.append(0)
    put_varint(out, timestamp_delta)
    put_varint(out, offset_delta)


def put_bytes(out: bytearray, data: Buffer | None) -> None:
    if data is None:
        out.append(1)
    else:
        put_varint(out, len(data))
        out += data


def encode_records(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytearray:
    """The payload of `records`; ValueError when a delta does not fit the format."""
    out = bytearray()
    for offset, timestamp, key, value, headers in records:
        body = bytearray()
        put_head(body, timestamp - base_timestamp, offset - base_offset)
        put_bytes(body, key)
        put_bytes(body, value)
        put_varint(body, len(headers))
        for name, header_value in headers:
            put_bytes(body, name.encode("utf-8", "surrogateescape"))
            put_bytes(body, header_value)
        put_varint(out, len(body))
        out += body
    return out


def splice_records(payload: Buffer, pieces: Iterable[tuple[int, int, int, int]]) -> bytearray:
    """A new payload from pieces (rest, end, offset delta, timestamp delta) that `index_records` found in an old one."""
    out = bytearray()
    with memoryview(payload) as data:
        for rest, end, offset_delta, timestamp_delta in pieces:
            if not 0 <= rest <= end <= len(data):
                raise ValueError("a piece lies outside the payload")
            head = bytearray()
            put_head(head, timestamp_delta, offset_delta)
            put_varint(out, len(head) + end - rest)
            out += head
            out += data[rest:end]
    return out


def scan_batches(buf: Buffer, position: int = 0) -> list[tuple[int, BatchHeader]]:
    """(position, header) of every whole batch from `position` on, up to the first incomplete one.

    Checksums are not looked at. BadBatch on another format or a size below a header's.
    """
    if position < 0:
        raise BadBatch("a batch cannot begin before its buffer")
    found = []
    while len(buf) - position >= HEADER_BYTES:
        header = read_header(buf, position)
        if header.magic != 2:
            raise BadBatch(f"batch format {header.magic} is not 2")
        if header.size < HEADER_BYTES:
            raise BadBatch(f"a batch of {header.size} bytes does not fit here")
        if header.size > len(buf) - position:
            break
        found.append((position, header))
        position += header.size
    return found


def read_plain_produce(_frame: bytearray, _position: int, _version: int) -> PlainProduce | None:
    """The Produce request at a position of a frame, when all of it is plain; None when the long way must be taken.

    Plain: no transactional id, no tags, and for each partition one whole batch that any topic without wishes of its
    own takes as it is. Without a compiler the long way is no longer than this would be.
    """
    return None


def stamp(buf: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Writes base offset and leader epoch into the header at `position`; both lie outside the checksum."""
    if position < 0 or len(buf) - position < HEADER_BYTES:
        raise BadBatch(f"a batch header needs {HEADER_BYTES} bytes")
    _STAMP_OFFSET.pack_into(buf, position, base_offset)
    _STAMP_EPOCH.pack_into(buf, position + 12, leader_epoch)


def retime(buf: bytearray | memoryview, position: int, size: int, attributes: int, max_timestamp: int) -> int:
    """Writes attributes, largest timestamp and the new checksum into the batch at `position`; returns the checksum."""
    _whole(buf, position, size)
    struct.pack_into(">h", buf, position + _BODY_AT, attributes)
    struct.pack_into(">q", buf, position + _MAX_AT, max_timestamp)
    crc = _computed(buf, position, size)
    _CRC.pack_into(buf, position + _CRC_AT, crc)
    return crc


class OffsetTable:
    """From keys to offsets, at most `slots` of them: a key is known by 128 bits of its hash."""

    __slots__ = ("_offsets", "_slots")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> None:
        """OverflowError when there is no room for a new key."""
        hashed = blake2b(key, digest_size=16).digest()
        if len(self._offsets) >= self._slots and hashed not in self._offsets:
            raise OverflowError("the table is full")
        self._offsets[hashed] = offset

    def get(self, key: bytes) -> int:
        """-1 when it was never put in."""
        return self._offsets.get(blake2b(key, digest_size=16).digest(), -1)
