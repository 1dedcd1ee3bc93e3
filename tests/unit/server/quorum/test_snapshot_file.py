from __future__ import annotations

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import Corrupt
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from penstock.server.quorum.snapshot_file import (
    CheckpointWriter,
    SnapshotId,
    parse_file_name,
    read_checkpoint,
    read_timestamp,
)
from penstock.testing.memory_files import MemoryFiles

RECORDS = [(FeatureLevelRecord(name=f"feature-{number}", feature_level=number), 0) for number in range(5)]


def checkpoint() -> bytes:
    writer = CheckpointWriter(Epoch(3), Millis(1_000))
    pieces = [writer.header(Millis(999)), writer.data(RECORDS[:3]), writer.data(RECORDS[3:]), writer.footer()]
    return b"".join(pieces)


def test_names_are_read_back() -> None:
    snapshot = SnapshotId(Offset(123), Epoch(4))
    assert snapshot.file_name == "00000000000000000123-0000000004.checkpoint"
    assert parse_file_name(snapshot.file_name) == snapshot
    for other in ("bootstrap.checkpoint", snapshot.file_name + ".part", "00000000000000000123.log"):
        assert parse_file_name(other) is None


def test_a_checkpoint_is_read_back() -> None:
    found = read_checkpoint("x", checkpoint())
    assert found.records == [record for record, _ in RECORDS]
    assert (found.last_contained_timestamp, found.voters) == (999, None)


def test_a_checkpoint_cut_anywhere_does_not_count() -> None:
    data = checkpoint()
    for size in range(0, len(data), 7):
        with pytest.raises(Corrupt):
            read_checkpoint("x", data[:size])


def test_a_flipped_bit_does_not_count() -> None:
    data = bytearray(checkpoint())
    # Offset and epoch of a batch lie outside its checksum; nothing here reads them.
    unread = {position + at for position, _ in scan_batches(bytes(data)) for at in (*range(8), *range(12, 16))}
    for position in range(len(data)):
        if position not in unread:
            data[position] ^= 1
            with pytest.raises(Corrupt):
                read_checkpoint("x", bytes(data))
            data[position] ^= 1


def test_the_time_of_a_checkpoint_that_cannot_be_read_is_0() -> None:
    files = MemoryFiles()
    files.makedirs("/log")
    data = checkpoint()
    for damaged, expected in ((data, 999), (data[:70], 0), (data[:10], 0), (b"", 0), (bytes(len(data)), 0)):
        files.write_atomic("/log/x", damaged)
        assert read_timestamp(files, "/log/x") == expected
