"""The metadata log on disk: `__cluster_metadata-0` with its segments and snapshots. Reads it back and appends to it.

Appending assigns offsets at once and is in memory; writing and syncing are off the loop, in order, one sync for all who
wait. Only what is synced counts for the quorum. So a disk that hangs delays what needs it, and nothing else. At the
start the newest whole snapshot is read, then all of the log after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, TypeVarTuple

from penstock.kernels import BatchHeader, crc_holds, scan_batches
from penstock.metadata.records import VersionedRecord, record_batch, unframe_record
from penstock.model.errors import CORRUPT_MESSAGE, Corrupt, Refused, StorageFailed
from penstock.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, Epoch, Millis, Offset, TopicPartition
from penstock.protocol.batch import read_records
from penstock.protocol.control import control_batch, read_control
from penstock.quorum.fetching import LogPoint, LogView
from penstock.quorum.history import LoggedEntry
from penstock.server.partitions.upkeep.disk_queue import DiskQueue
from penstock.server.quorum.metadata_driver import LogBatch
from penstock.server.quorum.snapshot_driver import PARTIAL_SUFFIX
from penstock.server.quorum.snapshot_file import (
    CHECKPOINT_SUFFIX,
    Checkpoint,
    SnapshotId,
    parse_file_name,
    read_checkpoint,
)
from penstock.server.quorum.tail import QuorumTail
from penstock.storage.checkpoints import EpochStart
from penstock.storage.epochs import Epochs
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
_UNWRITTEN_BYTES_MAX: Final = 64 << 20

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Decoded(NamedTuple):
    """A batch of the log, and the control records in it."""

    batch: LogBatch
    entries: list[LoggedEntry]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that was read back."""

    id: SnapshotId
    content: Checkpoint


@dataclass(slots=True)
class _Write:
    """Batches that go to the disk together, and whether they are synced then."""

    batches: list[bytes] = field(default_factory=list)
    sync: bool = False


class _Facts(NamedTuple):
    """The log as a piece of work left it."""

    end: Offset
    flushed: Offset
    size_bytes: int
    doomed: bool
    """Whether files wait to be removed."""


class _Shape(NamedTuple):
    """The whole of it."""

    start: Offset
    facts: _Facts
    epochs: list[EpochStart]


class QuorumLog:
    """Owns the files. Decides nothing: epochs come from the quorum.

    What the loop needs to know of the log is kept here: its ends, its epochs and its newest batches. `Log` itself is
    touched by the disk queue's pieces alone once it is open, so nobody here ever waits for the disk without saying so.
    """

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
        self._files, self._clock = files, clock
        self._settings = _log_settings(settings)
        self._queue = DiskQueue(offload, directory, on_failure, name="metadata log on its disk")
        self._on_flushed: Callable[[Offset], None] = lambda _offset: None
        self._purging: asyncio.TimerHandle | None = None
        self._log: Log | None = None
        self._start = self._end = self._flushed = self._written = Offset(0)
        self._committed = Offset(0)
        self._size_bytes = 0
        self._epochs = Epochs([], lambda: self._end)
        self._tail = QuorumTail(self._end)
        self._write: _Write | None = None
        self._sync_asked_to = Offset(-1)
        self._unwritten_bytes = 0
        self.syncs = 0
        self.snapshots: list[SnapshotId] = []
        """Whole snapshots on the disk, the oldest first."""

    # Opening

    def open(self) -> Snapshot | None:
        """Opens the log where the newest snapshot that can be read allows it; that snapshot.

        The one thing that is done on the loop: before it nothing of this node takes part in anything.
        """
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
        self._begin_again(_shape(found))
        return newest

    def _begin_again(self, shape: _Shape) -> None:
        """The log is another one than before: it was opened, cut, or begun anew."""
        self._start, self._end = shape.start, shape.facts.end
        self._written, self._flushed, self._size_bytes, _ = shape.facts
        self._epochs = Epochs(shape.epochs, lambda: self._end)
        self._tail.cut(self._end)
        self._sync_asked_to = Offset(-1)

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
        """Every batch from `start` to the end of the log, decoded. Reads the disk: for the start."""
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
        return self._start

    @property
    def end(self) -> Offset:
        """The next offset to be assigned."""
        return self._end

    @property
    def flushed(self) -> Offset:
        """How far it is on the platter."""
        return self._flushed

    @property
    def last_epoch(self) -> Epoch:
        """The epoch of the last record; 0 in an empty log."""
        return Epoch(max(self._epochs.latest, 0))

    def epoch_before(self, offset: Offset) -> Epoch:
        """The epoch of the last record before `offset`; 0 when there is none."""
        return self.last_epoch if offset >= self._end else Epoch(max(self._epochs.epoch_at(offset - 1), 0))

    @property
    def crowded(self) -> bool:
        """Whether so much waits for the disk that nothing more may be added."""
        return self._unwritten_bytes >= _UNWRITTEN_BYTES_MAX

    # Appending

    def append_records(self, records: Sequence[VersionedRecord], epoch: Epoch) -> LogBatch:
        """One batch of metadata records."""
        now, base = self._clock.now_ms(), self._end
        data = record_batch(records, base=base, epoch=epoch, now=now)
        self._append(data, base, Offset(base + len(records)), epoch)
        return LogBatch(base, self._end, epoch, now, len(data), [record for record, _ in records])

    def append_control(self, entries: list[tuple[int, bytes]], epoch: Epoch) -> Decoded:
        """One control batch."""
        now, base = self._clock.now_ms(), self._end
        data = control_batch(entries, base_offset=base, leader_epoch=epoch, timestamp=now)
        self._append(data, base, Offset(base + len(entries)), epoch)
        logged = [LoggedEntry(Offset(base + at), kind, value) for at, (kind, value) in enumerate(entries)]
        return Decoded(LogBatch(base, self._end, epoch, now, len(data), ()), logged)

    def _append(self, batch: bytes, base: Offset, end: Offset, epoch: Epoch) -> None:
        """The batch is in the log from now on; the disk gets it as soon as it can."""
        assert base >= self._end, "the metadata log only grows at its end"
        self._end = end
        if epoch != self._epochs.latest:
            self._epochs.assign(epoch, base)
        self._tail.add(end, batch)
        self._unwritten_bytes += len(batch)
        self._next_write().batches.append(batch)

    def _next_write(self) -> _Write:
        """What goes to the disk next and can still be added to."""
        write = self._write
        if write is None:
            write = self._write = _Write()
            self._queue.put(partial(self._begin_write, write), self._wrote)
        return write

    def _begin_write(self, write: _Write) -> Callable[[], _Facts]:
        if self._write is write:
            self._write = None
        self._unwritten_bytes -= sum(map(len, write.batches))
        return partial(_written, self._opened, write, self._clock.now_ms())

    def _wrote(self, facts: _Facts) -> None:
        self._take(facts)
        self._tail.forget(self._written)

    def _take(self, facts: _Facts) -> None:
        self._written, self._size_bytes = facts.end, facts.size_bytes
        if facts.doomed and self._purging is None:
            delay_ms = self._settings.file_delete_delay_ms
            self._purging = asyncio.get_running_loop().call_later(delay_ms / 1_000, self._purge)
        if facts.flushed > self._flushed:
            self._flushed = facts.flushed
            self.syncs += 1
            self._on_flushed(facts.flushed)

    # Following

    def view(self) -> LogView:
        """The facts by which a fetch is judged."""
        oldest, newest = (self.snapshots[0], self.snapshots[-1]) if self.snapshots else (None, None)
        return LogView(
            self._start,
            LogPoint(self._end, self.last_epoch),
            self._epochs.end_of,
            None if oldest is None else LogPoint(*oldest),
            None if newest is None else LogPoint(*newest),
        )

    def read(self, offset: Offset, max_bytes: int) -> bytes | Awaitable[bytes]:
        """Whole batches from `offset` on, at least one if there is one. What memory does not have, the disk gives."""
        found = self._tail.read(offset, max_bytes)
        return self._read_older(offset, max_bytes) if found is None else found

    async def _read_older(self, offset: Offset, max_bytes: int) -> bytes:
        return await self.do(_read, self._opened, offset, max_bytes)

    def append_fetched(self, data: memoryview, epoch: Epoch) -> list[Decoded]:
        """Appends batches as the leader has them, those that are not newer than `epoch`. Refused if they are no log.

        Everything is decoded first: what this node cannot read does not get into its log.
        """
        fetched: list[tuple[bytes, BatchHeader]] = []
        decoded: list[Decoded] = []
        expected = self._end
        for position, header in scan_batches(data):
            if header.leader_epoch > epoch:
                # Written under a leader whom we do not follow yet; its fetches will bring it.
                break
            if not crc_holds(data, position, header.size):
                raise Refused(CORRUPT_MESSAGE, f"the checksum of the batch at {header.base_offset} does not hold")
            if header.base_offset < expected or header.last_offset_delta < 0:
                raise Refused(CORRUPT_MESSAGE, f"a batch at offset {header.base_offset}; the log ends at {expected}")
            expected = Offset(header.last_offset + 1)
            batch = bytes(data[position : position + header.size])
            fetched.append((batch, header))
            decoded.append(_decoded(memoryview(batch), header, expected))
        for batch, header in fetched:
            end = Offset(header.last_offset + 1)
            self._append(batch, Offset(header.base_offset), end, Epoch(header.leader_epoch))
        return decoded

    async def truncate(self, to: Offset) -> None:
        """Drops everything from `to` on. Nothing may be appended meanwhile."""
        self._begin_again(await self.do(_truncated, self._opened, to, self._clock.now_ms()))

    async def install(self, snapshot: SnapshotId) -> None:
        """Begins anew after a snapshot that is on the disk. Nothing may be appended meanwhile."""
        self._begin_again(await self.do(_installed, self._opened, snapshot))
        self.snapshot_added(snapshot)

    def snapshot_added(self, snapshot: SnapshotId) -> None:
        self.snapshots = sorted({*self.snapshots, snapshot})

    def snapshot_removed(self, snapshot: SnapshotId) -> None:
        self.snapshots = [each for each in self.snapshots if each != snapshot]

    # The disk

    async def do(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Anything else that is done in this directory, after all that was asked for before."""
        self._write = None
        return await self._queue.do(work, *args)

    def put(self, work: Callable[[*Ts], object], *args: *Ts) -> None:
        """The same where nobody waits for it."""
        self._write = None
        self._queue.put(lambda: partial(work, *args), lambda _result: None)

    def on_flushed(self, listener: Callable[[Offset], None]) -> None:
        self._on_flushed = listener

    def want_flush(self) -> None:
        """Asks for everything appended so far to be synced soon. Who comes while a sync runs joins the next one."""
        if max(self._flushed, self._sync_asked_to) < self._end:
            self._sync_asked_to = self._end
            self._next_write().sync = True

    async def quiet(self) -> None:
        """Returns when the disk has everything."""
        await self._queue.quiet()

    async def synced(self) -> None:
        """Returns when everything that is in the log now is on the platter, or the log has failed."""
        self.want_flush()
        await self.quiet()

    async def synced_names(self) -> None:
        """The same for a log that was cut or begun anew: which files there are is synced too."""
        self._next_write().sync = True
        await self.quiet()

    # Room

    def size_bytes(self) -> int:
        return self._size_bytes

    def commit_to(self, high_watermark: Offset) -> None:
        self._committed = max(self._committed, high_watermark)

    def forget_before(self, to: Offset) -> None:
        """Moves the start of the log to `to`; segments wholly before it go, their files a little later."""
        if to > self._start:
            self._start = to
            self._epochs.truncate_from_start(to)
        self._write = None
        begin = partial(_forgotten, self._opened, to, self._committed, self._clock.now_ms())
        self._queue.put(lambda: begin, self._take)

    def _purge(self) -> None:
        self._purging = None
        self._write = None
        self._queue.put(lambda: partial(_purged, self._opened, self._clock.monotonic_ms()), self._take)

    async def close(self) -> None:
        """Syncs what is there and lets go of the files."""
        if self._log is None:
            return
        try:
            await self._queue.do(partial(self._log.close, clean=True))
        except (OSError, StorageFailed, Refused) as failure:
            log.error("the metadata log is not closed cleanly, the next start reads it again: %s", failure)
        finally:
            self._log = None
            if self._purging is not None:
                self._purging.cancel()
            self._queue.crash()

    def crash(self) -> None:
        """As if the process had been killed: nothing more is written, synced or told."""
        if self._purging is not None:
            self._purging.cancel()
        self._queue.crash()


# What threads do with the log


def _written(opened: Log, write: _Write, now: Millis) -> _Facts:
    if write.batches:
        opened.append_exact(b"".join(write.batches), now=now)
    if write.sync:
        opened.flush()
    return _facts(opened)


def _forgotten(opened: Log, to: Offset, committed: Offset, now: Millis) -> _Facts:
    opened.commit_to(Offset(min(committed, opened.next)))
    opened.advance_start(to)
    opened.retain(now)
    return _facts(opened)


def _purged(opened: Log, monotonic_ms: float) -> _Facts:
    opened.purge(monotonic_ms)
    return _facts(opened)


def _truncated(opened: Log, to: Offset, now: Millis) -> _Shape:
    opened.truncate(to, now=now)
    return _shape(opened)


def _installed(opened: Log, snapshot: SnapshotId) -> _Shape:
    _begin_at(opened, snapshot)
    return _shape(opened)


def _shape(opened: Log) -> _Shape:
    return _Shape(opened.log_start, _facts(opened), opened.epochs.entries())


def _facts(opened: Log) -> _Facts:
    return _Facts(opened.written, opened.flushed, opened.size_bytes, opened.has_doomed)


def _read(opened: Log, offset: Offset, max_bytes: int) -> bytes:
    found = opened.read(offset, max_bytes=max_bytes, limit=opened.next, at_least_one=True)
    return b"".join(span.read() for span in found.spans)


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
