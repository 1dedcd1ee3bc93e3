"""A log of many gigabytes that takes little of the disk and is a log all the same.

Every batch is a megabyte with one record whose value is zeros. The header and the first bytes of the record are
written, the value is a hole in the file, and the last byte, no headers, is a zero as well. So every batch has its
true length, its true checksum and a record that a consumer can read; only the disk stores four kilobytes of it. A
checksum does not cover the base offset, hence one of them serves all batches of the same time. Offset and time indexes
and the snapshots of producers are what the broker itself would have written.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from penstock.kernels import Record
from penstock.protocol.batch import CODECS, build_batch
from penstock.storage.producer_snapshot import encode_snapshot

BATCH_BYTES = 1 << 20
BATCHES_A_SEGMENT = 1_000
SAME_TIME = 125
"""How many batches in a row have the same timestamp."""
STEP_MS = 60_000
HEAD_BYTES = 128
"""Of a batch that is written; what follows is zeros."""


def batch_at(timestamp_ms: int) -> bytes:
    """A batch of one record of zeros, with base offset 0."""
    overhead = len(build_batch([Record(0, timestamp_ms, None, bytes(BATCH_BYTES // 2))], codec=CODECS["none"]))
    value = bytes(BATCH_BYTES // 2 + BATCH_BYTES - overhead)
    batch = build_batch([Record(0, timestamp_ms, None, value)], codec=CODECS["none"])
    while len(batch) != BATCH_BYTES:
        # The lengths inside are of variable size; one or two steps settle them.
        value = bytes(len(value) + BATCH_BYTES - len(batch))
        batch = build_batch([Record(0, timestamp_ms, None, value)], codec=CODECS["none"])
    assert not any(batch[HEAD_BYTES:]), "all but the head is a hole"
    return bytes(batch)


def write_log(directory: Path, topic: str, segments: int, first_ms: int) -> int:
    """Puts sealed segments into the directory of a partition with an empty log; returns the offset after them.

    The node must be stopped. Its checkpoints are told, as a clean stop would have done it.
    """
    for old in [*directory.glob("*.log"), *directory.glob("*.index"), *directory.glob("*.timeindex")]:
        old.unlink()
    offset = 0
    for number in range(segments):
        offset = _write_segment(directory, offset, first_ms + number * (BATCHES_A_SEGMENT // SAME_TIME) * STEP_MS)
        # As at each roll: nobody with a producer id has written here.
        (directory / f"{offset:020d}.snapshot").write_bytes(encode_snapshot(()))
    (directory / f"{offset:020d}.log").touch()
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        _set_offset(directory.parent / name, topic, offset)
    return offset


def _write_segment(directory: Path, base: int, first_ms: int) -> int:
    offsets, times = bytearray(), bytearray()
    path = directory / f"{base:020d}.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        head = bytearray()
        for number in range(BATCHES_A_SEGMENT):
            timestamp_ms = first_ms + number // SAME_TIME * STEP_MS
            if number % SAME_TIME == 0:
                head = bytearray(batch_at(timestamp_ms)[:HEAD_BYTES])
            struct.pack_into(">q", head, 0, base + number)
            os.pwrite(descriptor, head, number * BATCH_BYTES)
            if number:
                # The largest time so far belongs to the first batch that has it.
                offsets += struct.pack(">ii", number, number * BATCH_BYTES)
                if number % SAME_TIME == 0 or number == 1:
                    times += struct.pack(">qi", timestamp_ms, number // SAME_TIME * SAME_TIME)
        os.truncate(descriptor, BATCHES_A_SEGMENT * BATCH_BYTES)
    finally:
        os.close(descriptor)
    path.with_suffix(".index").write_bytes(offsets)
    path.with_suffix(".timeindex").write_bytes(times)
    return base + BATCHES_A_SEGMENT


def _set_offset(checkpoint: Path, topic: str, offset: int) -> None:
    """Changes one line of a checkpoint: version, count, then topic, partition and offset a line."""
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    kept = [line for line in lines if not line.startswith(f"{topic} 0 ")] + [f"{topic} 0 {offset}"]
    checkpoint.write_text("\n".join(["0", str(len(kept)), *kept]) + "\n")
