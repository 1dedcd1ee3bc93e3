"""The metadata log on disk: `__cluster_metadata-0` with its segments and snapshots. Reads it back and appends to it.

Appending is synchronous and assigns offsets at once; syncing is off the loop, one sync for all who wait. Only what is
synced counts for the quorum. At the start the newest whole snapshot is read, then all of the log after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.kernels import scan_batches
from penstock.metadata.records import VersionedRecord, unframe_record
from penstock.model.errors import Corrupt, Refused, StorageFailed
from penstock.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Epoch, Millis, Offset, TopicPartition
from penstock.protocol.batch import read_records
from penstock.protocol.control import control_batch, read_control
from penstock.server.drivers.metadata_driver import LogBatch
from penstock.server.drivers.snapshot_driver import PARTIAL_SUFFIX
from penstock.server.drivers.snapshot_file import (
    CHECKPOINT_SUFFIX,
    Checkpoint,
    SnapshotId,
    parse_file_name,
    read_checkpoint,
    record_batch,
)
from penstock.storage.log import Log
from penstock.storage.names import PARTITION_METADATA
from penstock.storage.settings import PlainLogSettings

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Clock, Files, Offload

log = logging.getLogger("penstock.quorum")

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
_CONTROL_BIT: Final = 0x20
_REPLAY_BYTES: Final = 1 << 20


class ControlEntry(NamedTuple):
    """One control record of the quorum: what kind it is and its value."""

    offset: Offset
    epoch: Epoch
    kind: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that was read back."""

    id: SnapshotId
    content: Checkpoint


class QuorumLog:
    """Owns the files. Decides nothing: epochs come from the quorum."""

    def __init__(
        self,
        files: Files,
        offload: Offload,
        clock: Clock,
        directory: str,
        settings: BrokerSettings,
        on_failure: Callable[[StorageFailed], None],
    ) -> None:
        self.directory = directory
        self._files, self._offload, self._clock = files, offload, clock
        self._settings = _log_settings(settings)
        self._on_failure = on_failure
        self._on_flushed: Callable[[Offset], None] = lambda _offset: None
        self._flushing: asyncio.Task[None] | None = None
        self._purging: asyncio.TimerHandle | None = None
        self._log: Log | None = None
        self.syncs = 0

    # Opening

    def open(self) -> tuple[Snapshot | None, list[SnapshotId]]:
        """Opens the log where the newest snapshot that can be read allows it; (that snapshot, all snapshots)."""
        self._files.makedirs(self.directory)
        ids = self._tidy()
        newest = self._newest(ids)
        start = ids[0].end if ids else Offset(0)
        now = self._clock.now_ms()
        where = (self._files, self.directory, METADATA_PARTITION, METADATA_TOPIC_ID, self._settings)
        if self._files.exists(f"{self.directory}/{PARTITION_METADATA}"):
            # Whether the last stop was clean does not matter: all of it is read now in any case.
            found = Log.open(*where, now=now, clean=False, log_start=start)
        else:
            found = Log.create(*where, now=now)
        if newest is not None and newest.id.end > found.next:
            # The snapshot came from the leader and the log before it was not kept.
            found.truncate_fully(newest.id.end)
            found.epochs.assign(newest.id.epoch, newest.id.end)
        self._log = found
        # What recovery read back is what the disk gave us; it may still be in the page cache only.
        found.flush()
        return newest, ids

    def _tidy(self) -> list[SnapshotId]:
        """Removes what an interrupted snapshot left behind; the ids of the others, the oldest first."""
        ids = []
        for name in self._files.listdir(self.directory):
            if name.endswith(CHECKPOINT_SUFFIX + PARTIAL_SUFFIX):
                self._files.remove(f"{self.directory}/{name}")
            elif (found := parse_file_name(name)) is not None:
                ids.append(found)
        return sorted(ids)

    def _newest(self, ids: list[SnapshotId]) -> Snapshot | None:
        for each in reversed(ids):
            path = f"{self.directory}/{each.file_name}"
            try:
                return Snapshot(each, read_checkpoint(path, self._files.read(path)))
            except Corrupt as broken:
                log.error("snapshot %s cannot be used: %s", each.file_name, broken)
        return None

    def replay(self, start: Offset) -> Iterator[tuple[LogBatch, list[ControlEntry]]]:
        """Every batch from `start` to the end of the log, decoded."""
        opened = self._opened
        position = max(start, opened.log_start)
        while position < opened.next:
            read = opened.read(position, max_bytes=_REPLAY_BYTES, limit=opened.next, at_least_one=True)
            data = b"".join(span.read() for span in read.spans)
            for at, header in scan_batches(data):
                batch = memoryview(data)[at : at + header.size]
                end = Offset(header.base_offset + header.last_offset_delta + 1)
                if end > start:
                    yield _decoded(batch, end, bool(header.attributes & _CONTROL_BIT))
                position = end

    @property
    def _opened(self) -> Log:
        assert self._log is not None, "the log is opened before it is used"
        return self._log

    # Ends

    @property
    def end(self) -> Offset:
        """The next offset to be assigned."""
        return self._opened.next

    @property
    def last_epoch(self) -> Epoch:
        """The epoch of the last record; 0 in an empty log."""
        return Epoch(max(self._opened.epochs.latest, 0))

    # Appending

    def append_records(self, records: Sequence[VersionedRecord], epoch: Epoch) -> LogBatch:
        """One batch of metadata records."""
        now, base = self._clock.now_ms(), self.end
        data = record_batch(records, base=base, epoch=epoch, now=now)
        self._append(data, now)
        return LogBatch(base, self.end, epoch, now, len(data), [record for record, _ in records])

    def append_control(self, entries: list[tuple[int, bytes]], epoch: Epoch) -> LogBatch:
        """One control batch."""
        now, base = self._clock.now_ms(), self.end
        data = control_batch(entries, base_offset=base, leader_epoch=epoch, timestamp=now)
        self._append(data, now)
        return LogBatch(base, self.end, epoch, now, len(data), ())

    def _append(self, data: bytes, now: Millis) -> None:
        self._opened.append_exact(data, now=now)

    # Syncing

    def on_flushed(self, listener: Callable[[Offset], None]) -> None:
        self._on_flushed = listener

    def want_flush(self) -> None:
        """Asks for everything appended so far to be synced soon. Who comes while a sync runs joins the next one."""
        if self._flushing is None and self._opened.flushed < self._opened.written:
            self._flushing = asyncio.get_running_loop().create_task(self._flush(), name="metadata log sync")

    async def _flush(self) -> None:
        opened = self._opened
        try:
            while opened.flushed < opened.written:
                target = opened.written
                for file in opened.files_to_sync():
                    self.syncs += 1
                    await self._offload.call(file.sync)
                opened.mark_flushed(target)
                self._on_flushed(target)
        except OSError as failure:
            # After a failed sync nobody knows what is on the platter: the log can only be read again.
            self._on_failure(StorageFailed(self.directory, f"sync failed: {failure}"))
        finally:
            self._flushing = None

    # Room

    def size_bytes(self) -> int:
        return self._opened.size_bytes

    def commit_to(self, high_watermark: Offset) -> None:
        self._opened.commit_to(high_watermark)

    def forget_before(self, to: Offset) -> None:
        """Moves the start of the log to `to`; segments wholly before it go, their files a little later."""
        opened = self._opened
        opened.advance_start(to)
        if opened.retain(self._clock.now_ms()):
            delay_ms = self._settings.file_delete_delay_ms
            self._purging = asyncio.get_running_loop().call_later(delay_ms / 1_000, self._purge)

    def _purge(self) -> None:
        if self._log is not None:
            try:
                self._log.purge(self._clock.now_ms())
            except StorageFailed as failure:
                self._on_failure(failure)

    async def close(self) -> None:
        """Syncs what is there and lets go of the files."""
        if self._purging is not None:
            self._purging.cancel()
        while self._flushing is not None:
            await asyncio.shield(self._flushing)
        if self._log is not None:
            opened, self._log = self._log, None
            try:
                opened.close(clean=True)
            except (StorageFailed, Refused) as failure:
                log.error("the metadata log is not closed cleanly, the next start reads it again: %s", failure)


def _decoded(batch: memoryview, end: Offset, control: bool) -> tuple[LogBatch, list[ControlEntry]]:
    records = read_records(batch)
    epoch = Epoch(int.from_bytes(batch[12:16], "big", signed=True))
    base = Offset(end - len(records)) if not records else Offset(records[0].offset)
    timestamp = Millis(records[-1].timestamp) if records else Millis(0)
    if control:
        entries = [ControlEntry(Offset(record.offset), epoch, *read_control(record)) for record in records]
        return LogBatch(base, end, epoch, timestamp, len(batch), ()), entries
    decoded = [unframe_record(record.value or b"") for record in records]
    return LogBatch(base, end, epoch, timestamp, len(batch), decoded), []


def _log_settings(settings: BrokerSettings) -> PlainLogSettings:
    segment_bytes = settings["internal.metadata.log.segment.bytes"] or settings.number("metadata.log.segment.bytes")
    assert isinstance(segment_bytes, int)
    return PlainLogSettings(
        segment_bytes=segment_bytes,
        segment_ms=settings.number("metadata.log.segment.ms"),
        file_delete_delay_ms=settings.number("internal.metadata.delete.delay.millis"),
        retention_ms=-1,
        retention_bytes=-1,
    )
