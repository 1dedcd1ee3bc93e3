"""Checkpoint files of the metadata log: `<end offset>-<epoch>.checkpoint`, and `bootstrap.checkpoint` of a new
cluster.

A checkpoint is a sequence of record batches: a control batch with the header (and, where the quorum's own state
belongs in it, the kraft version and the voters), data batches with metadata records, and a control batch with the
footer. Offsets inside run from 0. A file without its footer was cut off and does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.kernels import HEADER_BYTES, BadBatch, BadBytes, crc_holds, scan_batches
from penstock.metadata.records import VersionedRecord, record_batch, unframe_record
from penstock.model.errors import Corrupt
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.batch import read_records
from penstock.protocol.codec import decode, encode
from penstock.protocol.control import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    control_batch,
    read_control,
)
from penstock.protocol.disk.raft_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from penstock.protocol.wire import Malformed

if TYPE_CHECKING:
    from penstock.metadata.records import Record as MetadataRecord
    from penstock.model.ports import Files

CHECKPOINT_SUFFIX: Final = ".checkpoint"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
RECORDS_PER_BATCH: Final = 1_000

NO_TIME: Final = Millis(0)
_CONTROL_BIT: Final = 0x20
# More than any header batch takes, also with a few hundred voters.
_HEADER_READ_BYTES: Final = 64 << 10
_NAME: Final = re.compile(r"^(\d{20})-(\d{10})\.checkpoint$")


class SnapshotId(NamedTuple):
    """Everything before `end` is in the snapshot; `epoch` is the epoch of the last record in it."""

    end: Offset
    epoch: Epoch

    @property
    def file_name(self) -> str:
        return f"{self.end:020d}-{self.epoch:010d}{CHECKPOINT_SUFFIX}"


def parse_file_name(name: str) -> SnapshotId | None:
    """None for every file that is not a finished snapshot of the log."""
    match = _NAME.match(name)
    return SnapshotId(Offset(int(match[1])), Epoch(int(match[2]))) if match else None


@dataclass(slots=True)
class Checkpoint:
    """What a checkpoint file says."""

    last_contained_timestamp: Millis = NO_TIME
    kraft_version: int | None = None
    voters: VotersRecord | None = None
    records: list[MetadataRecord] = field(default_factory=list)


class CheckpointWriter:
    """Makes the batches of one checkpoint, one after the other. Whoever calls decides when each piece is written."""

    def __init__(self, epoch: Epoch, now: Millis) -> None:
        self._epoch, self._now, self._offset = epoch, now, 0

    def header(
        self, last_contained_timestamp: Millis, kraft_version: int | None = None, voters: VotersRecord | None = None
    ) -> bytes:
        """The quorum's state is left out when it lives elsewhere: in `bootstrap.checkpoint`, and with static voters."""
        entries = [
            (SNAPSHOT_HEADER, encode(SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp), 0))
        ]
        if kraft_version is not None:
            entries.append((KRAFT_VERSION, encode(KRaftVersionRecord(kraft_version=kraft_version), 0)))
        if voters is not None:
            entries.append((KRAFT_VOTERS, encode(voters, 0)))
        return self._control(entries)

    def data(self, records: Sequence[VersionedRecord]) -> bytes:
        base = self._offset
        self._offset += len(records)
        return record_batch(records, base=Offset(base), epoch=self._epoch, now=self._now)

    def footer(self) -> bytes:
        return self._control([(SNAPSHOT_FOOTER, encode(SnapshotFooterRecord(), 0))])

    def _control(self, entries: list[tuple[int, bytes]]) -> bytes:
        base = self._offset
        self._offset += len(entries)
        return control_batch(entries, base_offset=base, leader_epoch=self._epoch, timestamp=self._now)


def read_checkpoint(path: str, data: bytes) -> Checkpoint:
    """Corrupt when a batch is broken or the footer is missing."""
    found = Checkpoint()
    finished = False
    for position, batch, control in batches_of(path, data):
        if finished:
            raise Corrupt(path, position, "records follow the snapshot's footer")
        if not control:
            found.records.extend(unframe_record(record.value or b"") for record in read_records(batch))
            continue
        for record in read_records(batch):
            kind, value = read_control(record)
            if kind == SNAPSHOT_HEADER:
                header = decode(SnapshotHeaderRecord, 0, value)[0]
                found.last_contained_timestamp = Millis(header.last_contained_log_timestamp)
            elif kind == KRAFT_VERSION:
                found.kraft_version = decode(KRaftVersionRecord, 0, value)[0].kraft_version
            elif kind == KRAFT_VOTERS:
                found.voters = decode(VotersRecord, 0, value)[0]
            elif kind == SNAPSHOT_FOOTER:
                finished = True
    if not finished:
        raise Corrupt(path, len(data), "the snapshot has no footer, so it was never finished")
    return found


def read_timestamp(files: Files, path: str) -> Millis:
    """When the last record in the snapshot was written, from its header alone; 0 when that cannot be read."""
    file = files.open(path, writable=False)
    try:
        head = file.pread(_HEADER_READ_BYTES, 0)
    finally:
        file.close()
    try:
        for _, batch, _ in batches_of(path, _first_batch(head)):
            for record in read_records(batch):
                kind, value = read_control(record)
                if kind == SNAPSHOT_HEADER:
                    return Millis(decode(SnapshotHeaderRecord, 0, value)[0].last_contained_log_timestamp)
    except (BadBytes, Corrupt, Malformed):
        return Millis(0)
    return Millis(0)


def _first_batch(head: bytes) -> bytes:
    found = scan_batches(memoryview(head)) if len(head) >= HEADER_BYTES else []
    return head[: found[0][1].size] if found else b""


def batches_of(path: str, data: bytes) -> Iterator[tuple[int, memoryview, bool]]:
    """(position, batch, is it a control batch) of every batch; Corrupt on a bad checksum or a torn end."""
    view = memoryview(data)
    end = 0
    try:
        batches = scan_batches(view)
    except BadBatch as broken:
        raise Corrupt(path, 0, str(broken)) from broken
    for position, header in batches:
        if not crc_holds(view, position, header.size):
            raise Corrupt(path, position, "the checksum of a batch does not match its bytes")
        end = position + header.size
        yield position, view[position:end], bool(header.attributes & _CONTROL_BIT)
    if end != len(data):
        raise Corrupt(path, end, "the last batch is cut off")
