"""Record batches of format 2 as whole things: built, opened, packed anew. The kernels do the bytes.

`build_batch` and `read_records` are the two ends that most callers need. `assemble` is what all writers share: a
payload of encoded records and the fields of a header become a batch with a good checksum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.kernels import (
    HEADER_BYTES,
    BatchHeader,
    Record,
    RecordsBuilder,
    decode_records,
    encode_records,
    read_header,
    write_header,
)
from penstock.protocol.compression import CODEC_NAMES, CODECS, NONE, compress, decompress
from penstock.protocol.wire import Buffer

__all__ = [
    "CODECS",
    "CODEC_NAMES",
    "assemble",
    "build_batch",
    "claims_transaction",
    "is_control",
    "is_log_append_time",
    "is_transactional",
    "payload_of",
    "read_records",
    "rebuild_batch",
    "resequence",
    "seal",
]

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 21

NO_TIMESTAMP: Final = -1
NO_PRODUCER: Final = -1
NO_SEQUENCE: Final = -1

PAYLOAD_BYTES_MAX: Final = 1 << 30
"""How far a batch may decompress when its reader names no limit of its own."""


def codec_of(attributes: int) -> int:
    return attributes & CODEC_MASK


def is_log_append_time(attributes: int) -> bool:
    return bool(attributes & LOG_APPEND_TIME)


def is_transactional(attributes: int) -> bool:
    return bool(attributes & TRANSACTIONAL)


def claims_transaction(batch: Buffer | None) -> bool:
    """Whether bytes that nobody has checked begin with a batch of this format that says to be of a transaction."""
    if batch is None or len(batch) < HEADER_BYTES:
        return False
    return bool(batch[_MAGIC_AT] == _MAGIC and batch[_ATTRIBUTES_AT + 1] & TRANSACTIONAL)


def is_control(attributes: int) -> bool:
    return bool(attributes & CONTROL)


def delete_horizon_of(header: BatchHeader) -> int | None:
    """When the tombstones or the marker in a compacted batch may go, or None when no cleaner has set it yet."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON else None


def assemble(
    payload: Buffer,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
    level: int | None = None,
) -> bytearray:
    """A batch from encoded records, packed with the codec that `attributes` names. The result can be stamped."""
    codec = attributes & CODEC_MASK
    body = payload if codec == NONE else compress(codec, payload, level)
    batch = bytearray(HEADER_BYTES)
    batch += body
    write_header(
        batch,
        base_offset,
        leader_epoch,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    return batch


def seal(
    builder: RecordsBuilder,
    *,
    codec: int = NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> bytearray:
    """The batch of a builder, which takes no more records; without a codec it is the builder's own memory.

    Sealing again writes another header, into the same memory when there is no codec.
    """
    assert builder.count, "a batch holds at least one record"
    batch = builder.frame()
    if codec != NONE:
        packed = compress(codec, memoryview(batch)[HEADER_BYTES:], level)
        batch = bytearray(HEADER_BYTES)
        batch += packed
    write_header(
        batch,
        0,
        -1,
        codec | TRANSACTIONAL if transactional else codec,
        builder.count - 1,
        builder.base_timestamp,
        builder.max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        builder.count,
    )
    return batch


def resequence(batch: bytearray, *, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Gives a sealed batch another producer and sequence, in place; its records stay packed as they are."""
    header = read_header(batch)
    assert header.size == len(batch), "exactly one batch"
    write_header(
        batch,
        header.base_offset,
        header.leader_epoch,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        header.record_count,
    )


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: int = NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = 0,
) -> bytes:
    """A batch of `records`, whose offsets are absolute, rise, and begin at `base_offset` or later.

    With `timestamp_type` 1 (LogAppendTime) readers see the largest timestamp for every record.
    """
    assert records, "a batch that was never compacted holds at least one record"
    assert records[0].offset >= base_offset, "record offsets are absolute"
    base_timestamp = records[0].timestamp
    attributes = codec
    if timestamp_type:
        attributes |= LOG_APPEND_TIME
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    return bytes(
        assemble(
            encode_records(records, base_offset, base_timestamp),
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=attributes,
            last_offset_delta=records[-1].offset - base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max(record.timestamp for record in records),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
            level=level,
        )
    )


def payload_of(batch: Buffer, header: BatchHeader, limit: int = PAYLOAD_BYTES_MAX) -> Buffer:
    """The encoded records of `batch`, unpacked; a view into `batch` when they were not packed.

    Malformed when they do not unpack or would be larger than `limit`.
    """
    body = memoryview(batch)[HEADER_BYTES : header.size]
    codec = header.attributes & CODEC_MASK
    return body if codec == NONE else decompress(codec, body, limit)


def read_records(batch: Buffer, limit: int = PAYLOAD_BYTES_MAX) -> list[Record]:
    """The records of one batch with absolute offsets and the timestamps that consumers see. The CRC is not checked."""
    header = read_header(batch)
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    payload = payload_of(batch, header, limit)
    return decode_records(payload, header.record_count, header.base_offset, header.base_timestamp, append_time)


def rebuild_batch(
    header: BatchHeader,
    payload: Buffer,
    *,
    codec: int | None = None,
    level: int | None = None,
    attributes: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    record_count: int | None = None,
) -> bytearray:
    """The batch of `header` with another payload, codec, times or count; whatever is None stays as it was."""
    new_attributes = header.attributes if attributes is None else attributes
    if codec is not None:
        new_attributes = (new_attributes & ~CODEC_MASK) | codec
    return assemble(
        payload,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=new_attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp if base_timestamp is None else base_timestamp,
        max_timestamp=header.max_timestamp if max_timestamp is None else max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count if record_count is None else record_count,
        level=level,
    )
