"""A log: batches on disk with offsets that only rise. Append, read, truncate, flush, retain.

Four ends: `next` is assigned, `written` is readable, `flushed` survives a power cut, `committed` is on enough replicas.
Everything is synchronous and nothing here syncs to disk except `flush` and `close`: the files to sync are handed out.

A write error is final: the call raises StorageFailed, the log refuses everything from then on, and only opening the
directory again (`Log.open`) brings it back. Memory is never rolled back to guess what the disk did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from penstock.kernels import BadBatch, BatchHeader, crc_holds, scan_batches, stamp
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    KAFKA_STORAGE_ERROR,
    OFFSET_OUT_OF_RANGE,
    RECORD_LIST_TOO_LARGE,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.model.ports import Files
from penstock.storage import recovery, searching
from penstock.storage.checkpoints import LeaderEpochCheckpoint
from penstock.storage.epochs import Epochs
from penstock.storage.flushing import DirectorySync, PathSync, Syncable, TextWrite, pinned
from penstock.storage.names import DELETED, LEADER_EPOCHS, PARTITION_METADATA
from penstock.storage.partition_metadata import partition_metadata_text
from penstock.storage.producers import Producers
from penstock.storage.reading import OlderReads, RecentBatches
from penstock.storage.retention import expired_segments
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.settings import LogSettings
from penstock.storage.snapshot_files import SnapshotFiles
from penstock.storage.tickets import Read, Ticket

P = ParamSpec("P")
R = TypeVar("R")
DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000
_UNKNOWN_TIME = Millis(0)


def _guarded(method: Callable[Concatenate[Log, P], R]) -> Callable[Concatenate[Log, P], R]:
    """Refuses on a log that failed, and makes a failed log of one whose disk fails."""

    @wraps(method)
    def guarded(log: Log, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if log.failure is not None:
            raise log.refusal()
        try:
            return method(log, *args, **kwargs)
        except OSError as error:
            raise log.fail(error) from error

    return guarded


class Log:
    """One partition. Made by `Log.open` or `Log.create`."""

    __slots__ = (
        "_doomed", "_names_dirty", "_older", "_parent_dirty", "_recent", "_segments", "_snapshots", "_unsynced_paths",
        "committed", "cut_bytes", "directory", "epochs", "failure", "files", "flushed", "log_start",
        "messages_unflushed", "name", "next", "on_sealed", "producers", "scanned_bytes", "settings", "topic_id",
        "written",
    )  # fmt: skip

    def __init__(
        self,
        files: Files,
        directory: str,
        name: TopicPartition,
        topic_id: Uuid,
        settings: LogSettings,
        loaded: recovery.Loaded,
        high_watermark: int,
    ) -> None:
        self.files = files
        self.directory = directory
        self.name = name
        self.topic_id = topic_id
        self.settings = settings
        self.failure: StorageFailed | None = None
        # Told of each segment that gets no more batches; tiering and flush-on-roll hang on this.
        self.on_sealed: Callable[[Segment], None] | None = None
        self._segments: Segments = loaded.segments
        self._snapshots: SnapshotFiles = loaded.snapshots
        self.producers: Producers = loaded.producers
        self.epochs: Epochs = Epochs(loaded.epochs.entries(), lambda: self.next)
        self.epochs.dirty = loaded.epochs.dirty
        self.log_start = loaded.log_start
        self.next = self.written = loaded.end
        self.flushed = loaded.recovery_point
        self.scanned_bytes, self.cut_bytes = loaded.scanned_bytes, loaded.cut_bytes
        self.committed = loaded.log_start
        self.messages_unflushed = 0
        self._names_dirty = self._parent_dirty = False
        self._unsynced_paths: list[str] = []
        self._doomed: list[tuple[int | None, list[str]]] = []
        self._older = OlderReads(self._segments)
        self._recent = RecentBatches(self.next, self._segments.active.size)
        self.commit_to(Offset(min(high_watermark, self.next)))

    # -- opening and closing

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        name: TopicPartition,
        topic_id: Uuid,
        settings: LogSettings,
        *,
        now: Millis,
        clean: bool,
        recovery_point: int = 0,
        log_start: int = 0,
        high_watermark: int = 0,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
    ) -> Log:
        """Opens an existing directory; see `recovery` for what happens when it was not closed cleanly."""
        try:
            loaded = recovery.load(
                files,
                directory,
                settings,
                Producers(producer_expiration_ms),
                now=now,
                clean=clean,
                recovery_point=recovery_point,
                log_start=log_start,
            )
        except OSError as error:
            raise StorageFailed(directory, str(error)) from error
        log = cls(files, directory, name, topic_id, settings, loaded, high_watermark)
        if not clean:
            # Nobody can say which names the last process had made durable.
            log._unsynced_paths.append(f"{directory}/{PARTITION_METADATA}")
            log._names_dirty = log._parent_dirty = True
        return log

    @classmethod
    def create(
        cls,
        files: Files,
        directory: str,
        name: TopicPartition,
        topic_id: Uuid,
        settings: LogSettings,
        *,
        now: Millis,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
    ) -> Log:
        """Makes the directory with `partition.metadata` and an empty segment. Its names are durable after a flush."""
        try:
            files.makedirs(directory)
            metadata = f"{directory}/{PARTITION_METADATA}"
            file = files.open(metadata, create=True)
            text = partition_metadata_text(topic_id)
            file.pwritev((text,), 0)
            file.close()
        except OSError as error:
            raise StorageFailed(directory, str(error)) from error
        log = cls.open(
            files,
            directory,
            name,
            topic_id,
            settings,
            now=now,
            clean=True,
            producer_expiration_ms=producer_expiration_ms,
        )
        log._unsynced_paths.append(metadata)
        log._names_dirty = log._parent_dirty = True
        return log

    def close(self, clean: bool = True) -> None:
        """A clean close leaves indexes, epochs and a producer snapshot complete and everything flushed."""
        if self.failure is None and clean:
            self._close_cleanly()
        for segment in self._segments:
            segment.close()

    @_guarded
    def _close_cleanly(self) -> None:
        self.producers.end = self.next
        self._snapshots.take(self.producers)
        active = self._segments.active
        active.close_time_index()
        active.trim()
        self.flush()
        # An active segment's indexes need no sync in life, because recovery makes them again; now nobody will.
        pinned(active.offsets.file).sync()
        pinned(active.times.file).sync()
        if active.aborted.present:
            pinned(active.aborted.file).sync()

    def move(self, directory: str) -> None:
        """Follows the directory after it was renamed."""
        for segment in self._segments:
            segment.move(directory=directory)
        self._snapshots.directory = directory
        self._doomed = [
            (due, [directory + path[len(self.directory) :] for path in paths]) for due, paths in self._doomed
        ]
        self._unsynced_paths = [directory + path[len(self.directory) :] for path in self._unsynced_paths]
        self.directory = directory
        self._names_dirty = self._parent_dirty = True

    def fail(self, error: OSError) -> StorageFailed:
        """The disk failed: from now on the log refuses everything."""
        if self.failure is None:
            self.failure = StorageFailed(error.filename or self.directory, error.strerror or str(error))
        return self.failure

    def refusal(self) -> Refused:
        return Refused(KAFKA_STORAGE_ERROR, f"the log of {self.name} is offline: {self.failure}")

    # -- the ends

    @property
    def recovery_point(self) -> Offset:
        return self.flushed

    @property
    def local_start(self) -> Offset:
        """The first offset on this disk. Reads below it would go to a tier; there is none, so nothing lies below."""
        return Offset(max(self.log_start, self._segments[0].base))

    @property
    def last_stable(self) -> Offset:
        """Where a reader of committed transactions stops."""
        first = self.producers.first_unstable
        if first is None or first >= self.committed:
            return self.committed
        return Offset(max(first, self.log_start))

    def commit_to(self, offset: Offset) -> None:
        """Replication says that everything below `offset` is committed. Never goes back."""
        if offset > self.committed:
            assert offset <= self.next, "nothing is committed that was not assigned"
            self.committed = offset
            self.producers.replicated_to(offset)

    @property
    def segments(self) -> Sequence[Segment]:
        return list(self._segments)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    # -- appending

    def append(self, batch: bytearray | memoryview, header: BatchHeader, *, epoch: Epoch, now: Millis) -> Ticket:
        """The leader's append of one batch: assigns its offsets, stamps offset and epoch into it, and writes it.

        The caller has checked the batch. RECORD_LIST_TOO_LARGE when no segment can hold it.
        """
        if self.failure is not None:
            raise self.refusal()
        settings = self.settings
        base = self.next
        last = base + header.last_offset_delta
        timestamp = header.max_timestamp
        segment = self._segments.active
        if header.size > settings.segment_bytes:
            raise Refused(
                RECORD_LIST_TOO_LARGE,
                f"a batch of {header.size} bytes does not fit a segment of {settings.segment_bytes}",
            )
        try:
            if segment.must_roll(header.size, last, timestamp, now, settings):
                segment = self._roll(base, now)
            stamp(batch, 0, base, epoch)
            segment.append(batch, last, timestamp, settings.index_interval_bytes)
        except OSError as error:
            raise self.fail(error) from error
        end = Offset(last + 1)
        self.next = self.written = end
        self._recent.add(end, segment.size)
        if epoch != self.epochs.latest:
            self.epochs.assign(epoch, base)
        if header.producer_id >= 0:
            self._note_producer(header, base, batch, segment)
        self.producers.end = end
        self.messages_unflushed += end - base
        return Ticket(base, end, timestamp)

    @_guarded
    def append_exact(self, data: bytes | bytearray | memoryview, *, now: Millis, verify: bool = False) -> Ticket:
        """Batches whose offsets and epochs were assigned elsewhere: a follower's append, and the metadata log's.

        They must follow the log's end, gaps allowed. With `verify` checksums are looked at. CORRUPT_MESSAGE else.
        """
        view = memoryview(data)
        try:
            batches = scan_batches(view)
        except BadBatch as broken:
            raise Refused(CORRUPT_MESSAGE, str(broken)) from broken
        expected = self.next
        for position, header in batches:
            if header.base_offset < expected or header.last_offset_delta < 0:
                raise Refused(CORRUPT_MESSAGE, f"a batch at offset {header.base_offset}; the log ends at {expected}")
            if verify and not crc_holds(view, position, header.size):
                raise Refused(
                    CORRUPT_MESSAGE, f"the checksum of the batch at offset {header.base_offset} does not hold"
                )
            expected = Offset(header.last_offset + 1)
        if not batches or batches[-1][0] + batches[-1][1].size != len(view):
            raise Refused(CORRUPT_MESSAGE, "the bytes do not end with a whole batch")
        base = Offset(batches[0][1].base_offset)
        for position, header in batches:
            self._append_one_exact(view[position : position + header.size], header, now)
        return Ticket(base, self.next, batches[-1][1].max_timestamp)

    def _append_one_exact(self, batch: memoryview, header: BatchHeader, now: Millis) -> None:
        segment = self._segments.active
        base, last = Offset(header.base_offset), header.last_offset
        if segment.must_roll(header.size, last, header.max_timestamp, now, self.settings):
            segment = self._roll(base, now)
        segment.append(batch, last, header.max_timestamp, self.settings.index_interval_bytes)
        end = Offset(last + 1)
        self.messages_unflushed += end - self.next
        self.next = self.written = end
        self._recent.add(end, segment.size)
        if header.leader_epoch >= 0 and header.leader_epoch != self.epochs.latest:
            self.epochs.assign(Epoch(header.leader_epoch), base)
        if header.producer_id >= 0:
            self._note_producer(header, base, batch, segment)
        self.producers.end = end

    def _note_producer(self, header: BatchHeader, base: int, batch: bytearray | memoryview, segment: Segment) -> None:
        aborted = self.producers.apply(header, base, batch)
        if aborted is not None:
            try:
                segment.aborted.append(aborted)
            except OSError as error:
                raise self.fail(error) from error

    def _roll(self, base: Offset, now: Millis) -> Segment:
        """Seals the active segment and begins a new one at `base`, with a producer snapshot for it."""
        sealed = self._segments.active
        preallocate_bytes = self.settings.segment_bytes if self.settings.preallocate else 0
        if sealed.size == 0:
            # Nothing was written to it: it makes way, so that two segments never claim the same offsets.
            self._segments.remove(sealed)
            self._doom([sealed], now)
        else:
            sealed.seal()
        segment = Segment.create(self.files, self.directory, base, now, preallocate_bytes)
        self._segments.add(segment)
        self.producers.end = base
        self._snapshots.take(self.producers)
        self._recent = RecentBatches(base, 0)
        self._names_dirty = True
        if sealed.size and self.on_sealed is not None:
            self.on_sealed(sealed)
        return segment

    # -- reading

    def read(self, offset: int, *, max_bytes: int, limit: int, at_least_one: bool) -> Read:
        """Whole batches of one segment from the one that holds `offset`, up to `max_bytes` and below offset `limit`.

        With `at_least_one` the first batch comes even when it is larger. OFFSET_OUT_OF_RANGE outside of
        [log_start, written]. Corrupt when the file has no batch where one must be.
        """
        if self.failure is not None:
            raise self.refusal()
        written = self.written
        if not self.log_start <= offset <= written:
            raise Refused(
                OFFSET_OUT_OF_RANGE, f"offset {offset} of {self.name}; there is {self.log_start} to {written}"
            )
        if limit > written:
            limit = written
        if offset >= limit:
            return Read([], 0, Offset(offset))
        recent = self._recent
        try:
            if offset >= recent.offsets[0]:
                return recent.read(self._segments.active, offset, max_bytes, limit, at_least_one)
            return self._older.read(offset, max_bytes, limit, written, at_least_one)
        except OSError as error:
            raise self.fail(error) from error

    @_guarded
    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that touch [first, end)."""
        return searching.aborted(self._segments, first, end)

    @_guarded
    def offset_for_time(self, timestamp: int, limit: int) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record below `limit` that is not older than `timestamp`."""
        return searching.offset_for_time(self._segments, timestamp, self.log_start, limit, self.written)

    @_guarded
    def max_timestamp(self) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the newest record; the first one when several are."""
        return searching.max_timestamp(self._segments)

    # -- flushing

    @_guarded
    def files_to_sync(self) -> list[Syncable]:
        """What to sync, off the loop and in this order, to make everything up to `written` durable.

        `mark_flushed` comes after. Names go first: a segment that a truncation removed must be gone for good before
        the truncated bytes of the one before it are.
        """
        items: list[Syncable] = []
        if self._names_dirty:
            items.append(DirectorySync(self.files, self.directory))
        if self._parent_dirty:
            items.append(DirectorySync(self.files, self.directory.rpartition("/")[0]))
        items += [PathSync(self.files, path) for path in self._unsynced_paths + self._snapshots.unsynced]
        self._unsynced_paths.clear()
        self._snapshots.unsynced.clear()
        if self.flushed < self.written or self._names_dirty:
            for segment in self._segments.since(self.flushed):
                items.append(pinned(segment.file))
                segment.save()
                if segment is not self._segments.active:
                    items += [pinned(segment.offsets.file), pinned(segment.times.file)]
                    items += [pinned(segment.aborted.file)] if segment.aborted.present else []
        if self.epochs.dirty:
            path = f"{self.directory}/{LEADER_EPOCHS}"
            items.append(TextWrite(self.files, path, LeaderEpochCheckpoint.text(self.epochs.entries())))
            self.epochs.dirty = False
        self._names_dirty = self._parent_dirty = False
        return items

    def mark_flushed(self, to: Offset) -> None:
        """Everything below `to` is durable: `to` was `written` when `files_to_sync` was called, and all are synced."""
        if to > self.flushed:
            self.flushed = Offset(min(to, self.written))
            self.messages_unflushed = self.written - self.flushed

    @_guarded
    def flush(self) -> None:
        """Syncs here and now. For tools, tests and the end; a broker syncs off the loop."""
        to = self.written
        for item in self.files_to_sync():
            item.sync()
        self.mark_flushed(to)

    # -- cutting

    @_guarded
    def truncate(self, to: Offset, *, now: Millis = _UNKNOWN_TIME) -> bool:
        """Drops everything from `to` on; a batch that holds `to` goes whole. False when there was nothing to drop.

        The recovery point may go back with it: write the checkpoint soon after.
        """
        if to >= self.next:
            self.epochs.truncate_from_end(self.next)
            return False
        if to < self._segments[0].base:
            self.truncate_fully(to, now=now)
            return True
        gone = [segment for segment in self._segments.since(to) if segment.base > to]
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone, None)
        active = self._segments.active
        active.truncate(to, now)
        active.activate()
        self.epochs.truncate_from_end(to)
        self._set_end(to)
        self.log_start = Offset(min(self.log_start, to))
        self._reload_producers(now)
        return True

    @_guarded
    def truncate_fully(self, start: Offset, *, now: Millis = _UNKNOWN_TIME, log_start: Offset | None = None) -> None:
        """Drops everything and begins anew at `start`: a follower too far behind does this."""
        gone = list(self._segments)
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone, None)
        self._segments.add(Segment.create(self.files, self.directory, start, now))
        self.epochs.clear()
        self._snapshots.start_over(start)
        self.producers.clear(start)
        self._set_end(start)
        self.log_start = start if log_start is None else log_start
        self.committed = start
        self._names_dirty = True

    def _set_end(self, end: Offset) -> None:
        self.next = self.written = end
        self.flushed = Offset(min(self.flushed, end))
        self.committed = Offset(min(self.committed, end))
        self.messages_unflushed = self.written - self.flushed
        self._older.forget()
        self._recent = RecentBatches(end, self._segments.active.size)

    def _reload_producers(self, now: Millis) -> None:
        self._snapshots.load(self.producers, start=self.log_start, end=self.next, now=now)
        recovery.replay(self.producers, self._segments, self.next)
        self.producers.replicated_to(self.committed)

    def advance_start(self, to: Offset) -> bool:
        """Nothing before `to` is promised any more. OFFSET_OUT_OF_RANGE beyond what is committed."""
        if self.failure is not None:
            raise self.refusal()
        if to > self.committed:
            raise Refused(OFFSET_OUT_OF_RANGE, f"cannot start {self.name} at {to}: committed is {self.committed}")
        if to <= self.log_start:
            return False
        self.log_start = to
        self.epochs.truncate_from_start(to)
        self._snapshots.start_advanced(to)
        return True

    # -- upkeep

    @_guarded
    def roll_if_due(self, now: Millis) -> bool:
        """Rolls an active segment that is older than `segment.ms`, without waiting for the next batch."""
        active = self._segments.active
        if not active.size or not active.is_old(now, now, self.settings):
            return False
        self._roll(self.next, now)
        return True

    @_guarded
    def roll(self, now: Millis) -> None:
        """Begins a new segment if the active one has anything in it."""
        if self._segments.active.size:
            self._roll(self.next, now)

    @_guarded
    def retain(self, now: Millis) -> list[Segment]:
        """Deletes what retention lets go and moves the log's start; returns the segments that went."""
        gone = expired_segments(
            self._segments,
            self.settings,
            now=now,
            log_start=self.log_start,
            log_end=self.next,
            committed=self.committed,
        )
        if not gone:
            return []
        if len(gone) == len(self._segments):
            self._roll(self.next, now)
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone, now)
        self.advance_start(Offset(self._segments[0].base))
        return gone

    def _doom(self, segments: list[Segment], now: int | None) -> None:
        """Renames the files of segments that left the log; `purge` removes them once nobody can be reading them."""
        for segment in segments:
            paths = segment.move(mark=DELETED) + self._snapshots.mark_deleted(segment.base)
            self._doomed.append((None if now is None else now + self.settings.file_delete_delay_ms, paths))
        if segments:
            self._older.forget()
            self._names_dirty = True

    @_guarded
    def purge(self, now: Millis) -> int:
        """Removes deleted files whose delay is over; returns how many segments are still waiting."""
        waiting: list[tuple[int | None, list[str]]] = []
        due_now = []
        for due, paths in self._doomed:
            if due is None:
                due = now + self.settings.file_delete_delay_ms
            if due <= now:
                due_now += paths
            else:
                waiting.append((due, paths))
        self._doomed = waiting
        for path in due_now:
            try:
                self.files.remove(path)
            except FileNotFoundError:
                continue
        return len(waiting)

    def describe(self) -> dict[str, Any]:
        """The numbers that people ask for."""
        return {
            "log_start": self.log_start,
            "next": self.next,
            "flushed": self.flushed,
            "committed": self.committed,
            "segments": len(self._segments),
            "size_bytes": self.size_bytes,
        }

    def __repr__(self) -> str:
        return f"Log({self.name}, {self.log_start} to {self.next})"
