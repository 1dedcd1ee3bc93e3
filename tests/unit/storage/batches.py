"""Hand-made batches for the storage tests: no protocol room needed."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from penstock.kernels import BatchHeader, Record, crc32c, encode_records, read_header

TRANSACTIONAL, CONTROL = 0x10, 0x20


def batch(
    count: int = 1,
    *,
    value: bytes = b"v",
    timestamp: int = 1_000,
    base: int = 0,
    epoch: int = -1,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
    records: Sequence[Record] | None = None,
) -> bytearray:
    """A batch of `count` records with timestamps that rise by one."""
    if records is None:
        records = [Record(base + i, timestamp + i, b"k%d" % i, value) for i in range(count)]
    payload = encode_records(records, base, records[0].timestamp)
    newest = max(record.timestamp for record in records)
    delta = records[-1].offset - base
    body = struct.pack(">hiqqqhii", attributes, delta, records[0].timestamp, newest, *producer, len(records)) + payload
    head = struct.pack(">qiibI", base, len(body) + 9, epoch, 2, crc32c(body))
    return bytearray(head + body)


def marker(
    producer_id: int, producer_epoch: int, *, aborts: bool, coordinator_epoch: int = 0, base: int = 0
) -> bytearray:
    """The control batch that ends a transaction."""
    record = Record(base, 1_000, struct.pack(">hh", 0, 0 if aborts else 1), struct.pack(">hi", 0, coordinator_epoch))
    return batch(
        base=base, records=[record], producer=(producer_id, producer_epoch, -1), attributes=TRANSACTIONAL | CONTROL
    )


def sized(size: int, **kwargs: object) -> bytearray:
    """A batch of exactly `size` bytes with one record."""
    value = b"x" * max(0, size - 80)
    while True:
        made = batch(value=value, **kwargs)  # type: ignore[arg-type]
        if len(made) == size:
            return made
        value = value + b"x" * (size - len(made)) if len(made) < size else value[: size - len(made)]


def header_of(data: bytearray | bytes) -> BatchHeader:
    return read_header(data)
