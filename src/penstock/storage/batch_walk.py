"""Walking over the batches of a log file in pieces of bounded size."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from penstock.kernels import HEADER_BYTES, BadBatch, BatchHeader, crc32c, crc_holds, read_header, scan_batches
from penstock.model.errors import Corrupt
from penstock.model.ports import File

# Enough for the headers of several small batches, and little to read for one large batch.
_GLANCE_BYTES = 8 << 10
CHUNK_BYTES = 1 << 20

# base offset, length, …, last offset delta, base timestamp, max timestamp
_GLANCE = struct.Struct(">qi11xi8xq")
_BODY_AT = 21


class Glance(NamedTuple):
    """A batch seen from outside: where it lies and which offsets it holds."""

    position: int
    base: int
    last: int
    size: int
    max_timestamp: int


def glance_batches(file: File, position: int, end: int) -> Iterator[Glance]:
    """Every whole batch in [position, end); only headers are looked at. Corrupt when a size makes no sense."""
    chunk = b""
    chunk_at = position
    while end - position >= HEADER_BYTES:
        at = position - chunk_at
        if len(chunk) - at < _GLANCE.size:
            chunk = file.pread(min(_GLANCE_BYTES, end - position), position)
            chunk_at, at = position, 0
            if len(chunk) < _GLANCE.size:
                return
        base, length, delta, max_timestamp = _GLANCE.unpack_from(chunk, at)
        size = length + 12
        if size < HEADER_BYTES or delta < 0:
            raise Corrupt(file.path, position, f"a batch header with size {size} and last offset delta {delta}")
        if position + size > end:
            return
        yield Glance(position, base, base + delta, size, max_timestamp)
        position += size


class Found(NamedTuple):
    """A batch with its whole header. It is `data[at : at + header.size]`; a large one is not read, `data` is None."""

    position: int
    header: BatchHeader
    data: bytes | None
    at: int


def walk_batches(file: File, position: int, end: int) -> Iterator[Found]:
    """Every whole batch in [position, end) with its header, up to the first one that is cut short.

    A batch larger than a chunk is given without its bytes. BadBatch on nonsense.
    """
    while end - position >= HEADER_BYTES:
        chunk = file.pread(min(CHUNK_BYTES, end - position), position)
        batches = scan_batches(chunk)
        for at, header in batches:
            yield Found(position + at, header, chunk, at)
        if batches:
            at, header = batches[-1]
            position += at + header.size
            continue
        if len(chunk) < HEADER_BYTES:
            return
        header = read_header(chunk)
        if position + header.size > end:
            return
        yield Found(position, header, None, 0)
        position += header.size


def intact_batches(file: File, position: int, end: int) -> Iterator[Found]:
    """Like `walk_batches`, but ends quietly at the first batch that is torn, nonsense or fails its checksum."""
    batches = walk_batches(file, position, end)
    while True:
        try:
            found = next(batches, None)
        except BadBatch:
            # The chunk had good batches before the bad one; take those one by one.
            yield from _one_by_one(file, position, end)
            return
        if found is None or not _sane(found.header) or not _crc_holds(file, found):
            return
        yield found
        position = found.position + found.header.size


def _one_by_one(file: File, position: int, end: int) -> Iterator[Found]:
    while end - position >= HEADER_BYTES:
        header = read_header(file.pread(HEADER_BYTES, position))
        if header.magic != 2 or not _sane(header) or position + header.size > end:
            return
        data = file.pread(header.size, position) if header.size <= CHUNK_BYTES else None
        found = Found(position, header, data, 0)
        if not _crc_holds(file, found):
            return
        yield found
        position += header.size


def _sane(header: BatchHeader) -> bool:
    return header.size >= HEADER_BYTES and header.last_offset_delta >= 0 and header.base_offset >= 0


def _crc_holds(file: File, found: Found) -> bool:
    if found.data is not None:
        return crc_holds(found.data, found.at, found.header.size)
    crc = 0
    position, end = found.position + _BODY_AT, found.position + found.header.size
    while position < end:
        chunk = file.pread(min(CHUNK_BYTES, end - position), position)
        if not chunk:
            return False
        crc = crc32c(chunk, crc)
        position += len(chunk)
    return crc == found.header.crc
