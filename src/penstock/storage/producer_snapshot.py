"""Producer-state snapshots: version, CRC-32C of the rest, count, 46 bytes for each producer (its last batch only)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from penstock.kernels import crc32c
from penstock.model.errors import Corrupt

_VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_FROM = 6


class ProducerRecord(NamedTuple):
    """One producer as the snapshot has it; -1 stands for none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first: int


def encode_snapshot(producers: Iterable[ProducerRecord]) -> bytes:
    entries = [_ENTRY.pack(*producer) for producer in producers]
    data = bytearray(_HEAD.pack(_VERSION, 0, len(entries)) + b"".join(entries))
    struct.pack_into(">I", data, 2, crc32c(memoryview(data)[_CRC_FROM:]))
    return bytes(data)


def decode_snapshot(data: bytes, path: str) -> list[ProducerRecord]:
    """Corrupt when the bytes are not a whole snapshot; the caller falls back to an older one."""
    if len(data) < _HEAD.size:
        raise Corrupt(path, 0, "a producer snapshot has at least 10 bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise Corrupt(path, 0, f"version {version} of a producer snapshot is unknown; expected {_VERSION}")
    if crc != crc32c(memoryview(data)[_CRC_FROM:]):
        raise Corrupt(path, 2, "the checksum does not hold")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise Corrupt(path, 6, f"{count} producers do not fill {len(data)} bytes")
    return [ProducerRecord(*_ENTRY.unpack_from(data, _HEAD.size + i * _ENTRY.size)) for i in range(count)]
