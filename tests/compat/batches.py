"""Encodes record batches by hand, so that a test or a load generator decides every byte of what a broker is given."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import cramjam
import crc32c
import lz4.frame
import zstandard

from tests.compat.wire import CODECS

_CRC_FROM = 21
_TRANSACTIONAL = 0x10
_HEADER = struct.Struct(">qiibihiqqqhii")

# The Java reader refuses linked lz4 blocks; a fixed gzip time keeps the bytes the same from run to run.
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda raw: raw,
    "gzip": lambda raw: gzip.compress(raw, mtime=0),
    "snappy": lambda raw: bytes(cramjam.snappy.compress_raw(raw)),
    "lz4": lambda raw: lz4.frame.compress(raw, block_linked=False),
    "zstd": lambda raw: zstandard.ZstdCompressor(level=3).compress(raw),
}


@dataclass(frozen=True)
class Record:
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = field(default_factory=tuple)
    timestamp_delta_ms: int = 0


def varint(value: int) -> bytes:
    """A zigzag varint of up to 64 bits."""
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append((left & 0x7F) | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def _record(record: Record, offset_delta: int) -> bytes:
    body = b"\0" + varint(record.timestamp_delta_ms) + varint(offset_delta) + _sized(record.key) + _sized(record.value)
    body += varint(len(record.headers))
    body += b"".join(_sized(name.encode()) + _sized(value) for name, value in record.headers)
    return varint(len(body)) + body


def encode_batch(
    records: Sequence[Record],
    *,
    codec: str = "none",
    base_timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """One batch as a producer sends it: base offset 0, no leader epoch, the checksum filled in."""
    raw = b"".join(_record(record, delta) for delta, record in enumerate(records))
    payload = _COMPRESS[codec](raw)
    max_timestamp_ms = base_timestamp_ms + max(record.timestamp_delta_ms for record in records)
    batch = bytearray(_HEADER.size + len(payload))
    _HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - 12,
        -1,
        2,
        0,
        CODECS.index(codec) | (_TRANSACTIONAL if transactional else 0),
        len(records) - 1,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch[_HEADER.size :] = payload
    # The checksum covers everything behind it. It is unsigned, so it is put in on its own.
    struct.pack_into(">I", batch, _CRC_FROM - 4, crc32c.crc32c(memoryview(batch)[_CRC_FROM:]))
    return bytes(batch)
