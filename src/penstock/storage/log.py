"""A log: batches on disk with offsets that only rise. Append, read, truncate, flush, retain, compact.

Four ends: `next` is assigned, `written` is readable, `flushed` survives a power cut, `committed` is on enough replicas.
Everything is synchronous and nothing here syncs to disk except `flush` and `close`: the files to sync are handed out.

A write error is final: the call raises StorageFailed, the log refuses everything from then on, and only opening the
directory again (`Log.open`) brings it back. Memory is never rolled back to guess what the disk did.

A log owns its parts: `Segments` in order, `RecentBatches` and `OlderReads` to read by, `Epochs`, `Producers` with their
`SnapshotFiles`, what the disk is still owed (`Unsynced`), and files that wait for their removal (`DoomedFiles`). What
may go is decided by `retention`, what a cleaning pass does by `cleaning`; the log carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from penstock.kernels import BatchHeader, stamp
from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    OFFSET_OUT_OF_RANGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    Corrupt,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.model.ports import Files
from penstock.storage import recovery, searching
from penstock.storage.clean_job import CleanResult
from penstock.storage.cleaning import CleanPlan, bring_to_swap, discard, overtaken, plan_cleaning, still_valid
from penstock.storage.confirming import confirm_aborted, confirm_scan, ended_since
from penstock.storage.doomed import Doomed
from penstock.storage.epochs import Epochs
from penstock.storage.exact_batches import check_exact
from penstock.storage.flushing import Syncable, pinned
from penstock.storage.names import DELETED, PARTITION_METADATA
from penstock.storage.partition_metadata import partition_metadata_text
from penstock.storage.producers import CONTROL, Marker, Producers
from penstock.storage.reading import OlderReads, Read, RecentBatches
from penstock.storage.recalling import recall
from penstock.storage.retention import expired_segments
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.settings import LogSettings
from penstock.storage.snapshot_files import SnapshotFiles
from penstock.storage.tickets import Ticket
from penstock.storage.transaction_index import AbortedTransaction
from penstock.storage.unsynced import Unsynced
from penstock.storage.verification import Verification

DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000
_UNKNOWN_TIME = Millis(0)
_SEGMENT_OFFSETS = 1 << 31
"""How many offsets one segment can tell apart."""

P = ParamSpec("P")
R = TypeVar("R")


def guarded(method: Callable[Concatenate[Log, P], R]) -> Callable[Concatenate[Log, P], R]:
    """Refuses on a log that failed, and makes a failed log of one whose disk fails."""

    @wraps(method)
    def with_guard(log: Log, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if log.failure is not None:
            raise log.refusal()
        try:
            return method(log, *args, **kwargs)
        except OSError as error:
            raise log.fail(error) from error

    return with_guard


class Log:
    """One partition. Made by `Log.open` or `Log.create`."""

    __slots__ = (
        "_doomed", "_older", "_opened_at", "_recent", "_segments", "_snapshots", "_unsynced", "cleaned_to", "committed",
        "cut_bytes", "cuts", "directory", "epochs", "failure", "files", "flushed", "gapless", "home", "log_start",
        "messages_unflushed", "name", "next", "on_doomed", "on_sealed", "producers", "scanned_bytes", "settings",
        "topic_id", "written",
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
        self.home = directory.rpartition("/")[0]  # the log directory that it lies in with others
        self.name = name
        self.topic_id = topic_id
        self.settings = settings
        self.failure: StorageFailed | None = None
        # Told of each segment that gets no more batches; tiering and flush-on-roll hang on this.
        self.on_sealed: Callable[[Segment], None] | None = None
        # Told that there is something to `purge`.
        self.on_doomed: Callable[[], None] | None = None
        self._segments: Segments = loaded.segments
        self._snapshots: SnapshotFiles = loaded.snapshots
        self.producers: Producers = loaded.producers
        self.epochs: Epochs = Epochs(loaded.epochs.entries(), lambda: self.next)
        self.epochs.dirty = loaded.epochs.dirty
        self.log_start = loaded.log_start
        self.next = self.written = loaded.end
        self.flushed = loaded.recovery_point
        self.scanned_bytes, self.cut_bytes = loaded.scanned_bytes, loaded.cut_bytes
        # Whether no cleaning had left out offsets when it was opened.
        self.gapless = loaded.gapless
        self.committed = loaded.log_start
        # Where the last cleaning pass ended; None when there was none.
        self.cleaned_to: Offset | None = None
        # How often its end was cut off since it was opened: what was read before a cut may not be what is there now.
        self.cuts = 0
        self.messages_unflushed = 0
        self._unsynced = Unsynced(files, self._segments, self._snapshots, self.epochs)
        self._doomed = Doomed[list[str]]()
        # End and active bytes when it was opened after a clean stop.
        self._opened_at = (Offset(-1), -1)
        self._older = OlderReads(self._segments)
        self._recent = RecentBatches(self.next, self._segments.active.size)
        if high_watermark <= self.next:
            # One behind the end is another log's, or of records that a crash took. Replication tells what is true.
            self.commit_to(Offset(high_watermark))

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
        gapless: bool = False,
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
                gapless=gapless,
            )
        except (OSError, Corrupt) as error:
            raise StorageFailed(directory, str(error)) from error
        log = cls(files, directory, name, topic_id, settings, loaded, high_watermark)
        log._find_unreplicated()
        if clean and not loaded.scanned_bytes:
            log._opened_at = (log.next, log._segments.active.size)
        if not clean:
            # Nobody can say which names the last process had made durable.
            log._unsynced.paths.append(f"{directory}/{PARTITION_METADATA}")
            log._unsynced.all_names()
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
        log._unsynced.paths.append(metadata)
        log._unsynced.all_names()
        return log

    def close(self, clean: bool = True) -> None:
        """A clean close leaves indexes, epochs and a producer snapshot complete and everything flushed."""
        if self.failure is None and clean and not self._settled():
            self._close_cleanly()
        for segment in self._segments:
            segment.close()

    @guarded
    def _close_cleanly(self) -> None:
        self.producers.end = self.next
        self._snapshots.take(self.producers)
        active = self._segments.active
        active.close_time_index()
        active.trim()
        active.make_indexes()
        # Of the snapshot and the indexes; after a clean stop nobody looks for what is missing.
        self._unsynced.names = True
        self.flush()
        if active.size:
            # These need no sync in life, because recovery makes them again; after a clean stop nobody will.
            active.save()
            pinned(active.offsets.file).sync()
            pinned(active.times.file).sync()
            if active.aborted.present:
                pinned(active.aborted.file).sync()

    def _settled(self) -> bool:
        """Whether nothing happened since a clean stop: then closing 10,000 logs costs 10,000 syncs less."""
        unchanged = (self.next, self._segments.active.size) == self._opened_at and self.flushed == self.written
        return unchanged and not self._unsynced

    # -- failing

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
    def recovery_checkpoint(self) -> Offset:
        """The recovery point to write down while the log is open.

        After a crash the segment that holds it is read again and indexes before it are trusted. Those of the active
        segment are never synced in life, and those of one just sealed not yet: so it stays at or before their base.
        """
        return Offset(min(self.flushed, self._unsynced.first_unsynced_base()))

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
            if self.producers.unreplicated:
                self.producers.replicated_to(offset)

    @property
    def segments(self) -> Sequence[Segment]:
        return list(self._segments)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    # -- appending

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        epoch: Epoch,
        now: Millis,
        marker: Marker | None = None,
    ) -> Ticket:
        """The leader's append of one batch: assigns its offsets, stamps offset and epoch into it, and writes it.

        The caller has checked the batch. Who writes the end of a transaction says so with `marker`, which need not be
        read out of the batch then. RECORD_LIST_TOO_LARGE when no segment can hold it.
        """
        if self.failure is not None:
            raise self.refusal()
        settings, segment = self.settings, self._segments.active
        size, base, timestamp = header.size, self.next, header.max_timestamp
        last = base + header.last_offset_delta
        if size > settings.segment_bytes:
            raise Refused(
                RECORD_LIST_TOO_LARGE, f"a batch of {size} bytes does not fit a segment of {settings.segment_bytes}"
            )
        try:
            if segment.must_roll(size, last, timestamp, now, settings):
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
        producers = self.producers
        if header.producer_id >= 0:
            if marker is not None:
                self._note_aborted(
                    producers.apply_marker(header.producer_id, header.producer_epoch, base, marker), segment
                )
            elif header.attributes & CONTROL:
                self._note_producer(header, base, batch, segment)
            else:
                producers.apply_data(header, base)
        producers.end = end
        self.messages_unflushed += end - base
        return Ticket(base, end, timestamp)

    @guarded
    def append_exact(self, data: bytes | bytearray | memoryview, *, now: Millis, verify: bool = False) -> Ticket:
        """Batches whose offsets and epochs were assigned elsewhere: a follower's append, and the metadata log's.

        They must follow the log's end, gaps allowed. With `verify` checksums are looked at. CORRUPT_MESSAGE else.
        """
        view = memoryview(data)
        batches = check_exact(view, self.next, verify=verify)
        base = Offset(batches[0][1].base_offset)
        self._write_exact(view, batches, now)
        return Ticket(base, self.next, batches[-1][1].max_timestamp)

    def _write_exact(self, view: memoryview, batches: list[tuple[int, BatchHeader]], now: Millis) -> None:
        """Takes checked batches into indexes, epochs and producers, and writes all that go to one segment at once."""
        settings, segment, end = self.settings, self._segments.active, self.next
        begin = batches[0][0]  # the first byte that is not written yet
        for position, header in batches:
            size, last, timestamp = header.size, header.last_offset, header.max_timestamp
            if segment.must_roll(size, last, timestamp, now, settings, position - begin):
                self._write_run(segment, view[begin:position], end)
                # Named by the log's end also where offsets are missing before the batch, so that no gap between two
                # segments looks like the loss of one's end.
                segment = self._roll(end if last - end < _SEGMENT_OFFSETS else Offset(header.base_offset), now)
                begin = position
            at = segment.size + position - begin
            segment.note(at, size, last, timestamp, settings.index_interval_bytes)
            end = Offset(last + 1)
            self._recent.add(end, at + size)
            if header.leader_epoch >= 0 and header.leader_epoch != self.epochs.latest:
                self.epochs.assign(Epoch(header.leader_epoch), Offset(header.base_offset))
            if header.producer_id >= 0:
                self._note_producer(header, header.base_offset, view[position : position + size], segment)
            self.producers.end = end
        self._write_run(segment, view[begin : position + size], end)

    def _write_run(self, segment: Segment, run: memoryview, end: Offset) -> None:
        if len(run):
            segment.write(run)
            self.messages_unflushed += end - self.next
            self.next = self.written = end

    def _note_producer(self, header: BatchHeader, base: int, batch: bytearray | memoryview, segment: Segment) -> None:
        self._note_aborted(self.producers.apply(header, base, batch), segment)

    def _note_aborted(self, aborted: AbortedTransaction | None, segment: Segment) -> None:
        if aborted is not None:
            try:
                segment.aborted.append(aborted)
            except OSError as error:
                raise self.fail(error) from error

    def known_batch(self, header: BatchHeader) -> Ticket | None:
        """None when a producer's batch may be appended, its ticket when it was appended before; else Refused."""
        try:
            return self.producers.check(header)
        except Refused as refusal:
            if refusal.error is not OUT_OF_ORDER_SEQUENCE_NUMBER or not recall(self, header):
                raise
        return self.producers.check(header)

    def known_in_transaction(
        self, header: BatchHeader, guard: Verification | None, *, verifies: bool = True
    ) -> Ticket | None:
        """The same for a batch that is part of a transaction; see `Producers.check_transactional`."""
        try:
            return self.producers.check_transactional(header, guard, verifies=verifies)
        except Refused as refusal:
            if refusal.error is not OUT_OF_ORDER_SEQUENCE_NUMBER or not recall(self, header):
                raise
        return self.producers.check_transactional(header, guard, verifies=verifies)

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
            return self._older.read(offset, max_bytes, limit, written, at_least_one, gapless=self._gapless)
        except OSError as error:
            raise self.fail(error) from error

    @property
    def _gapless(self) -> bool:
        """Whether each segment ends where the next one begins: only a cleaning leaves out offsets between them."""
        return self.gapless and self.cleaned_to is None and not self.settings.compacts

    @guarded
    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that touch [first, end)."""
        confirm = partial(confirm_scan, self._segments, self._snapshots)
        return searching.aborted(self._segments, first, end, confirm)

    @guarded
    def offset_for_time(self, timestamp: int, limit: int) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record below `limit` that is not older than `timestamp`."""
        return searching.offset_for_time(
            self._segments, timestamp, self.log_start, limit, self.written, gapless=self._gapless
        )

    @guarded
    def max_timestamp(self) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the newest record; the first one when several are."""
        return searching.max_timestamp(self._segments)

    # -- flushing

    @guarded
    def files_to_sync(self) -> list[Syncable]:
        """What to sync, off the loop and in this order, to make everything up to `written` durable.

        `mark_flushed` comes after.
        """
        active = self._segments.active
        if not self._unsynced and active.base <= self.flushed:
            return [pinned(active.file)] if self.flushed < self.written else []
        return self._unsynced.hand_out(self.directory, self.flushed, self.written)

    def mark_flushed(self, to: Offset) -> None:
        """Everything below `to` is durable: `to` was `written` when `files_to_sync` was called, and all are synced."""
        self._unsynced.synced()
        if to > self.flushed:
            self.flushed = Offset(min(to, self.written))
            self.messages_unflushed = self.written - self.flushed

    @guarded
    def flush(self) -> None:
        """Syncs here and now. For tools, tests and the end; a broker syncs off the loop."""
        to = self.written
        for item in self.files_to_sync():
            item.sync()
        self.mark_flushed(to)

    # -- cutting

    @guarded
    def truncate(self, to: Offset, *, now: Millis = _UNKNOWN_TIME) -> bool:
        """Drops everything from `to` on. False when there was nothing to drop.

        A batch that holds `to` goes whole, and the log ends where it began: what comes next must bring all of it back.
        The recovery point may go back with it: write the checkpoint soon after.
        """
        if to >= self.next:
            self.epochs.truncate_from_end(self.next)
            return False
        if to < self._segments[0].base:
            self.truncate_fully(to, now=now)
            return True
        self.cuts += 1
        gone = [segment for segment in self._segments.since(to) if segment.base > to]
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone)
        active = self._segments.active
        holding = active.find(to)
        if holding is not None:
            to = Offset(min(to, holding.base))
        active.truncate(to, now)
        active.activate()
        # It may be sealed before the next flush, which looks only at what lies behind the recovery point.
        self._unsynced.cut.append(active)
        self.epochs.truncate_from_end(to)
        self._set_end(to)
        self.log_start = Offset(min(self.log_start, to))
        self._reload_producers(now)
        return True

    @guarded
    def truncate_fully(self, start: Offset, *, now: Millis = _UNKNOWN_TIME, log_start: Offset | None = None) -> None:
        """Drops everything and begins anew at `start`: a follower too far behind does this."""
        self.cuts += 1
        gone = list(self._segments)
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone)
        self._segments.add(Segment.create(self.files, self.directory, start, now))
        self.epochs.clear()
        self._snapshots.start_over(start)
        self.producers.clear(start)
        self._set_end(start)
        self.log_start = start if log_start is None else log_start
        self.committed = start
        self._unsynced.names = True

    def _set_end(self, end: Offset) -> None:
        self.next = self.written = end
        self.flushed = Offset(min(self.flushed, end))
        self.committed = Offset(min(self.committed, end))
        if self.cleaned_to is not None:
            self.cleaned_to = Offset(min(self.cleaned_to, end))
        self.messages_unflushed = self.written - self.flushed
        self._older.forget()
        self._recent = RecentBatches(end, self._segments.active.size)

    def _reload_producers(self, now: Millis) -> None:
        self._snapshots.load(self.producers, start=self.log_start, end=self.next, now=now)
        recovery.replay(self.producers, self._segments, self.next)
        self._find_unreplicated()
        self.producers.replicated_to(self.committed)

    @guarded
    def _find_unreplicated(self) -> None:
        """Transactions whose markers are here but not committed hold readers back as open ones do.

        Those that ended before the snapshot that the producers were loaded from are looked for in the batches.
        """
        producers = self.producers
        if self.committed < producers.ends_known_from and producers.have_ended:
            ended = ended_since(self._segments, self._snapshots, self.committed, producers.ends_known_from)
            producers.unreplicated.update(ended)
            producers.replicated_to(self.committed)

    # -- changing the set of segments

    @guarded
    def roll(self, now: Millis) -> None:
        """Begins a new segment if the active one has anything in it."""
        if self._segments.active.size:
            self._roll(self.next, now)

    def _roll(self, base: Offset, now: Millis) -> Segment:
        """Seals the active segment and begins a new one at `base`, with a producer snapshot for it."""
        sealed = self._segments.active
        preallocate_bytes = self.settings.segment_bytes if self.settings.preallocate else 0
        if sealed.size == 0:
            # Nothing was written to it: it makes way, so that two segments never claim the same offsets.
            self._segments.remove(sealed)
            self._doom([sealed])
        else:
            sealed.seal()
            self._unsynced.seals.append(sealed)
        segment = Segment.create(self.files, self.directory, base, now, preallocate_bytes)
        self._segments.add(segment)
        self.producers.end = base
        self._snapshots.take(self.producers)
        self._recent = RecentBatches(base, 0)
        self._unsynced.names = True
        if sealed.size and self.on_sealed is not None:
            self.on_sealed(sealed)
        return segment

    def _doom(self, segments: list[Segment], *, keep_snapshot_of: int = -1) -> None:
        """Renames the files of segments that left the log; `purge` removes them once nobody can be reading them."""
        for segment in segments:
            paths = segment.move(mark=DELETED)
            if segment.base != keep_snapshot_of:
                paths += self._snapshots.mark_deleted(segment.base)
            self._doomed.add(paths, self.settings.file_delete_delay_ms)
        if segments:
            self._older.forget()
            self._unsynced.names = True
            if self.on_doomed is not None:
                self.on_doomed()

    # -- retention

    @guarded
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
        self._doom(gone)
        self.advance_start(Offset(self._segments[0].base))
        return gone

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

    @property
    def has_doomed(self) -> bool:
        """Whether files of deleted segments wait for `purge`."""
        return bool(self._doomed)

    def purgeable(self, monotonic_ms: float) -> list[str]:
        """Deleted files whose delay is over, handed out once: remove them off the loop, for a gigabyte takes 0.1 s."""
        return [path for paths in self._doomed.take_due(monotonic_ms) for path in paths]

    @guarded
    def purge(self, monotonic_ms: float) -> int:
        """`purgeable`, removed here and now; returns how many segments are still waiting."""
        for path in self.purgeable(monotonic_ms):
            try:
                self.files.remove(path)
            except FileNotFoundError:
                continue
        return len(self._doomed)

    # -- compaction

    @guarded
    def cleanable(self, now: Millis, *, dedupe_buffer_bytes: int = 128 << 20) -> CleanPlan | None:
        """What a cleaning pass would do now, or None when none is due."""
        if self.settings.compacts:
            for segment in self._segments:
                confirm_aborted(segment, self._segments, self._snapshots)
        return plan_cleaning(
            self._segments,
            self.settings,
            self.producers,
            now=now,
            first_dirty=self.cleaned_to,
            log_start=self.log_start,
            log_end=self.next,
            last_stable=self.last_stable,
            dedupe_buffer_bytes=dedupe_buffer_bytes,
            cuts=self.cuts,
        )

    def overtook(self, plan: CleanPlan) -> bool:
        """Whether the log has lost something since the pass was planned, so that its failure says nothing."""
        return overtaken(plan, self._segments, self.cuts)

    @guarded
    def swap(self, plan: CleanPlan, result: CleanResult, *, now: Millis) -> bool:
        """Puts the cleaned segments in the place of those they replace.

        False when the log was cut meanwhile: then the result is thrown away, and cleaning begins again where it was.
        """
        if not still_valid(plan, self._segments, self.cuts, result.segments):
            discard(self.files, self.directory, result.segments)
            return False
        by_base = {segment.base: segment for segment in plan.segments}
        for cleaned in result.segments:
            segment = bring_to_swap(self.files, self.directory, cleaned, now)
            replaced = [by_base[base] for base in cleaned.replaces]
            for old in replaced:
                self._segments.remove(old)
            self._segments.add(segment)
            self._doom(replaced, keep_snapshot_of=segment.base)
            segment.move(mark="")
        self._older.forget()
        return True

    # -- moving to another directory

    def move(self, directory: str) -> None:
        """Follows the directory after it was renamed."""
        for segment in self._segments:
            segment.move(directory=directory)
        self._snapshots.directory = directory
        old = len(self.directory)
        self._doomed.rename(lambda paths: [directory + path[old:] for path in paths])
        self._unsynced.move(self.directory, directory)
        self.directory, self.home = directory, directory.rpartition("/")[0]

    @guarded
    def skip_to(self, offset: Offset, *, now: Millis) -> None:
        """Goes on at `offset`: the log that this one copies has nothing left between its last batch and its end."""
        if offset > self.next:
            self._roll(offset, now)
            self.messages_unflushed += offset - self.next
            self.next = self.written = offset

    @guarded
    def take_over(self, source: Log) -> None:
        """Becomes the successor of a log whose batches it all holds: ends, epochs and producers are the source's.

        What batches alone do not tell comes over too: an epoch that wrote nothing, and a producer whose batches
        retention took. The source must not be used afterwards.
        """
        assert self.next == source.next, "a successor holds everything"
        self.settings, self.on_sealed, self.on_doomed = source.settings, source.on_sealed, source.on_doomed
        if self.on_doomed is not None and self._doomed:
            self.on_doomed()
        self.epochs.clear()
        for entry in source.epochs.entries():
            self.epochs.assign(entry.epoch, entry.start)
        self.producers = source.producers
        self.cleaned_to = source.cleaned_to
        self.commit_to(source.committed)
        self.advance_start(source.log_start)
        self._snapshots.take(self.producers)

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
