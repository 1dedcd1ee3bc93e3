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

from penstock.kernels import BatchHeader, crc_holds, scan_batches
from penstock.metadata.records import VersionedRecord, unframe_record
from penstock.model.errors import CORRUPT_MESSAGE, Corrupt, Refused, StorageFailed
from penstock.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Epoch, Millis, Offset, TopicPartition
from penstock.protocol.batch import read_records
from penstock.protocol.control import control_batch, read_control
from penstock.quorum.fetching import LogPoint, LogView
from penstock.quorum.history import LoggedEntry
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
from penstock.server.duty import duty
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


class Decoded(NamedTuple):
    """A batch of the log, and the control records in it."""

    batch: LogBatch
    entries: list[LoggedEntry]


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
        self.snapshots: list[SnapshotId] = []
        """Whole snapshots on the disk, the oldest first."""

    # Opening

    def open(self) -> Snapshot | None:
        """Opens the log where the newest snapshot that can be read allows it; that snapshot."""
        self._files.makedirs(self.directory)
        ids = self._tidy()
        newest, broken = self._newest(ids)
        ids = self.snapshots = [each for each in ids if each not in broken]
        start = ids[0].end if ids else Offset(0)
        now = self._clock.now_ms()
        where = (self._files, self.directory, METADATA_PARTITION, METADATA_TOPIC_ID, self._settings)
        if self._files.exists(f"{self.directory}/{PARTITION_METADATA}"):
            # Whether the last stop was clean does not matter: all of it is read now in any case.
            found = Log.open(*where, now=now, clean=False, log_start=start)
        else:
            found = Log.create(*where, now=now)
        self._do_without(broken, newest, found)
        if newest is not None and not _continues(found, newest.id):
            # The snapshot came from the leader and the log before it was not kept.
            _begin_at(found, newest.id)
        self._log = found
        # What recovery read back is what the disk gave us; it may still be in the page cache only.
        found.flush()
        return newest

    def _tidy(self) -> list[SnapshotId]:
        """Removes what an interrupted snapshot left behind; the ids of the others, the oldest first."""
        ids = []
        for name in self._files.listdir(self.directory):
            if name.endswith(CHECKPOINT_SUFFIX + PARTIAL_SUFFIX):
                self._files.remove(f"{self.directory}/{name}")
            elif (found := parse_file_name(name)) is not None:
                ids.append(found)
        return sorted(ids)

    def _newest(self, ids: list[SnapshotId]) -> tuple[Snapshot | None, dict[SnapshotId, Corrupt]]:
        """The newest snapshot that can be read, and those after it, which cannot."""
        broken: dict[SnapshotId, Corrupt] = {}
        for each in reversed(ids):
            path = f"{self.directory}/{each.file_name}"
            try:
                return Snapshot(each, read_checkpoint(path, self._files.read(path))), broken
            except Corrupt as why:
                log.error("snapshot %s cannot be used: %s", each.file_name, why)
                broken[each] = why
        return None, broken

    def _do_without(self, broken: dict[SnapshotId, Corrupt], newest: Snapshot | None, opened: Log) -> None:
        """Removes snapshots that cannot be read, so that nobody is sent to them, if an older one and the log tell all.

        A log alone tells it from its first record on, but for who the first voters are. Corrupt when something is
        missing: what would be left is no cluster, but half of one that looks whole.
        """
        base = opened.segments[0].base
        if base > (newest.id.end if newest is not None else 0) or (broken and newest is None):
            path, why = next(
                ((each.path, each.why) for each in broken.values()), (self.directory, "a snapshot is gone")
            )
            raise Corrupt(
                path,
                0,
                f"{why}; the metadata log, which begins at offset {base}, cannot stand in for it. Restore it from a "
                f"copy, or give the node an empty metadata directory and let it join again",
            )
        for each in broken:
            self._files.remove(f"{self.directory}/{each.file_name}")
            log.warning("snapshot %s is removed: an older one and the log tell the same", each.file_name)

    def replay(self, start: Offset) -> Iterator[Decoded]:
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
                    yield _decoded(batch, header, end)
                position = end

    @property
    def _opened(self) -> Log:
        assert self._log is not None, "the log is opened before it is used"
        return self._log

    # Ends

    @property
    def start(self) -> Offset:
        return self._opened.log_start

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

    def append_control(self, entries: list[tuple[int, bytes]], epoch: Epoch) -> Decoded:
        """One control batch."""
        now, base = self._clock.now_ms(), self.end
        data = control_batch(entries, base_offset=base, leader_epoch=epoch, timestamp=now)
        self._append(data, now)
        logged = [LoggedEntry(Offset(base + at), kind, value) for at, (kind, value) in enumerate(entries)]
        return Decoded(LogBatch(base, self.end, epoch, now, len(data), ()), logged)

    def _append(self, data: bytes, now: Millis) -> None:
        self._opened.append_exact(data, now=now)

    # Following

    def view(self) -> LogView:
        """The facts by which a fetch is judged."""
        opened = self._opened
        oldest, newest = (self.snapshots[0], self.snapshots[-1]) if self.snapshots else (None, None)
        return LogView(
            opened.log_start,
            LogPoint(opened.next, self.last_epoch),
            opened.epochs.end_of,
            None if oldest is None else LogPoint(*oldest),
            None if newest is None else LogPoint(*newest),
        )

    def read(self, offset: Offset, max_bytes: int) -> bytes:
        """Whole batches from `offset` on, at least one if there is one."""
        opened = self._opened
        found = opened.read(offset, max_bytes=max_bytes, limit=opened.next, at_least_one=True)
        return b"".join(span.read() for span in found.spans)

    def append_fetched(self, data: memoryview, epoch: Epoch) -> list[Decoded]:
        """Appends batches as the leader has them, those that are not newer than `epoch`. Refused if they are no log.

        Everything is decoded first: what this node cannot read does not get into its log.
        """
        decoded, size = [], 0
        for position, header in scan_batches(data):
            if header.leader_epoch > epoch:
                # Written under a leader whom we do not follow yet; its fetches will bring it.
                break
            if not crc_holds(data, position, header.size):
                raise Refused(CORRUPT_MESSAGE, f"the checksum of the batch at {header.base_offset} does not hold")
            size = position + header.size
            decoded.append(_decoded(data[position:size], header, Offset(header.last_offset + 1)))
        if size:
            self._opened.append_exact(data[:size], now=self._clock.now_ms())
        return decoded

    def truncate(self, to: Offset) -> None:
        """Drops everything from `to` on. No sync may be running."""
        assert self._flushing is None, "what is being synced is not cut"
        self._opened.truncate(to, now=self._clock.now_ms())

    def install(self, snapshot: SnapshotId) -> None:
        """Begins anew after a snapshot that is on the disk. No sync may be running."""
        assert self._flushing is None, "what is being synced is not cut"
        _begin_at(self._opened, snapshot)
        self.snapshot_added(snapshot)

    def snapshot_added(self, snapshot: SnapshotId) -> None:
        self.snapshots = sorted({*self.snapshots, snapshot})

    def snapshot_removed(self, snapshot: SnapshotId) -> None:
        self.snapshots = [each for each in self.snapshots if each != snapshot]

    # Syncing

    def on_flushed(self, listener: Callable[[Offset], None]) -> None:
        self._on_flushed = listener

    def want_flush(self) -> None:
        """Asks for everything appended so far to be synced soon. Who comes while a sync runs joins the next one."""
        if self._flushing is None and self._opened.flushed < self._opened.written:
            self._flushing = duty(self._flush(), name="metadata log sync")

    async def _flush(self) -> None:
        opened = self._opened
        try:
            while opened.flushed < opened.written:
                await self._sync(opened)
        except OSError as failure:
            # After a failed sync nobody knows what is on the platter: the log can only be read again.
            self._on_failure(StorageFailed(self.directory, f"sync failed: {failure}"))
        except (StorageFailed, Refused) as failure:
            self._on_failure(StorageFailed(self.directory, str(failure)))
        finally:
            self._flushing = None

    async def _sync(self, opened: Log) -> None:
        target = opened.written
        for file in opened.files_to_sync():
            self.syncs += 1
            await self._offload.call(file.sync)
        opened.mark_flushed(target)
        self._on_flushed(target)

    async def quiet(self) -> None:
        """Returns when no sync is running."""
        while self._flushing is not None:
            await asyncio.shield(self._flushing)

    async def synced(self) -> None:
        """Returns when everything that is in the log now is on the platter, or the log has failed."""
        self.want_flush()
        await self.quiet()

    async def synced_names(self) -> None:
        """The same for a log that was cut or begun anew: which files there are is synced too."""
        await self.quiet()
        self._flushing = duty(self._flush_names(), name="metadata log sync")
        await asyncio.shield(self._flushing)

    async def _flush_names(self) -> None:
        try:
            await self._sync(self._opened)
        except (OSError, StorageFailed, Refused) as failure:
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
        await self.quiet()
        if self._log is not None:
            opened, self._log = self._log, None
            try:
                opened.close(clean=True)
            except (StorageFailed, Refused) as failure:
                log.error("the metadata log is not closed cleanly, the next start reads it again: %s", failure)

    def crash(self) -> None:
        """As if the process had been killed: nothing more is written, synced or told."""
        for each in (self._purging, self._flushing):
            if each is not None:
                each.cancel()


def _continues(opened: Log, snapshot: SnapshotId) -> bool:
    """Whether the log goes on where the snapshot ends, and has the same history."""
    if opened.next < snapshot.end:
        return False
    if opened.next == snapshot.end:
        return opened.epochs.latest == snapshot.epoch or snapshot.end == 0
    return opened.log_start >= snapshot.end or opened.epochs.epoch_at(snapshot.end - 1) == snapshot.epoch


def _begin_at(opened: Log, snapshot: SnapshotId) -> None:
    opened.truncate_fully(snapshot.end)
    opened.epochs.assign(snapshot.epoch, snapshot.end)


def _decoded(batch: memoryview, header: BatchHeader, end: Offset) -> Decoded:
    records = read_records(batch)
    epoch = Epoch(int.from_bytes(batch[12:16], "big", signed=True))
    base = Offset(end - len(records)) if not records else Offset(records[0].offset)
    timestamp = Millis(records[-1].timestamp) if records else Millis(0)
    if header.attributes & _CONTROL_BIT:
        entries = [LoggedEntry(Offset(record.offset), *read_control(record)) for record in records]
        return Decoded(LogBatch(base, end, epoch, timestamp, len(batch), ()), entries)
    decoded = [unframe_record(record.value or b"") for record in records]
    return Decoded(LogBatch(base, end, epoch, timestamp, len(batch), decoded), [])


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
