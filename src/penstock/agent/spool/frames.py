"""How parcels lie in a file: frames that are found again, checked and counted without unpacking them. Pure.

A frame is a mark, the length of its body, the number of its records, a checksum of all that and the body: parcels in
MessagePack, packed with LZ4. A mark that is not where it should be is looked for further on, so that damage costs the
frames it hit.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import lz4.block
import msgspec

from penstock.agent.portion import Parcel

MARK: Final = b"PSF1"
_HEAD = struct.Struct(">4sIII")
HEAD_BYTES: Final = _HEAD.size
BODY_BYTES_MAX: Final = 1 << 30

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class BadFrame(ValueError):
    """What lies there is no frame, or was one."""


@dataclass(slots=True)
class Load:
    """Parcels of one input that lie in the spool together."""

    parcels: list[Parcel]
    dead_letters: str | None = None
    """The topic for those of them that can never be sent."""
    mark: tuple[Any, ...] | None = None
    """By which it is known again with `exactly_once`."""

    @property
    def records(self) -> int:
        return sum(len(parcel.values) for parcel in self.parcels)


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a frame."""

    body_bytes: int
    records: int
    checksum: int

    @property
    def frame_bytes(self) -> int:
        return HEAD_BYTES + self.body_bytes


def pack(loads: list[Load]) -> bytes:
    """A frame."""
    plain = [
        [load.dead_letters, [_plain(parcel) for parcel in load.parcels], *([] if load.mark is None else [load.mark])]
        for load in loads
    ]
    body: bytes = lz4.block.compress(_encode(plain))
    records = sum(load.records for load in loads)
    return _HEAD.pack(MARK, len(body), records, _checksum(len(body), records, body)) + body


def read_head(data: bytes, at: int = 0) -> Head:
    """BadFrame when no frame begins there."""
    if len(data) - at < HEAD_BYTES:
        raise BadFrame("it ends within the head of a frame")
    mark, body_bytes, records, checksum = _HEAD.unpack_from(data, at)
    if mark != MARK or not 0 < body_bytes <= BODY_BYTES_MAX:
        raise BadFrame("no frame begins here")
    return Head(body_bytes, records, checksum)


def unpack(head: Head, body: bytes) -> list[Load]:
    """BadFrame when the body is not what was packed."""
    if len(body) != head.body_bytes:
        raise BadFrame("it ends within a frame")
    if _checksum(head.body_bytes, head.records, body) != head.checksum:
        raise BadFrame("a frame is damaged: its checksum is wrong")
    try:
        return [
            Load([_parcel(each) for each in parcels], dead, tuple(mark[0]) if mark else None)
            for dead, parcels, *mark in _decode(lz4.block.decompress(body))
        ]
    except (msgspec.DecodeError, lz4.block.LZ4BlockError, ValueError, TypeError) as wrong:
        raise BadFrame(f"a frame cannot be read: {wrong}") from None


def _checksum(length: int, records: int, body: bytes) -> int:
    return crc32(body, crc32(struct.pack(">II", length, records)))


def _plain(parcel: Parcel) -> list[Any]:
    assert not parcel.nulls, "inputs whose records may lack a value do not spool"
    headers = parcel.headers
    shared = headers is not None and len(headers) > 1 and all(each is headers[0] for each in headers)
    # Most parcels have the same headers for all of their records.
    return [
        parcel.topic,
        parcel.values,
        parcel.keys,
        headers[:1] if shared and headers is not None else headers,
        parcel.timestamps_ms,
    ]


def _parcel(plain: list[Any]) -> Parcel:
    topic, values, keys, headers, timestamps_ms = plain
    if headers is not None:
        read = [tuple((name, value) for name, value in each) for each in headers]
        headers = read * len(values) if len(read) == 1 else read
    return Parcel(topic, values, keys, headers, timestamps_ms)
