"""A log: batches on disk with offsets that only rise. Append, read, truncate, flush, retain.

Four ends: `next` is assigned, `written` is readable, `flushed` survives a power cut, `committed` is on enough replicas.
Everything is synchronous and nothing here syncs to disk except `flush` and `close`: the files to sync are handed out.

A write error is final: the call raises StorageFailed, the log refuses everything from then on, and only opening the
directory again (`Log.open`) brings it back. Memory is never rolled back to guess what the disk did.
"""

from __future__ import annotations

from typing import Any

from penstock.kernels import BadBatch, BatchHeader, crc_holds, scan_batches, stamp
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    OFFSET_OUT_OF_RANGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    Refused,
    StorageFailed,
)
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.model.ports import Files
from penstock.storage import recovery, searching
from penstock.storage.checkpoints import LeaderEpochCheckpoint
from penstock.storage.flushing import DirectorySync, PathSync, Syncable, TextWrite, pinned
from penstock.storage.log_core import guarded
from penstock.storage.names import LEADER_EPOCHS, PARTITION_METADATA
from penstock.storage.partition_metadata import partition_metadata_text
from penstock.storage.producers import CONTROL, Producers
from penstock.storage.recalling import recall
from penstock.storage.segment import Segment
from penstock.storage.settings import LogSettings
from penstock.storage.tickets import Read, Ticket
from penstock.storage.upkeep import LogUpkeep

DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000
_UNKNOWN_TIME = Millis(0)
_SEGMENT_OFFSETS = 1 << 31
"""How many offsets one segment can tell apart."""


class Log(LogUpkeep):
    """One partition. Made by `Log.open` or `Log.create`."""

    __slots__ = ()

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
        except OSError as error:
            raise StorageFailed(directory, str(error)) from error
        log = cls(files, directory, name, topic_id, settings, loaded, high_watermark)
        if clean and not loaded.scanned_bytes:
            log._opened_at = (log.next, log._segments.active.size)
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
        self._names_dirty = True  # of the snapshot and the indexes; after a clean stop nobody looks for what is missing
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
        return unchanged and not (self._names_dirty or self._unsynced_paths or self._cut_segments or self.epochs.dirty)

    # -- appending

    def append(self, batch: bytearray | memoryview, header: BatchHeader, epoch: Epoch, now: Millis) -> Ticket:
        """The leader's append of one batch: assigns its offsets, stamps offset and epoch into it, and writes it.

        The caller has checked the batch. RECORD_LIST_TOO_LARGE when no segment can hold it.
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
            if header.attributes & CONTROL:
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
        aborted = self.producers.apply(header, base, batch)
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

    @guarded
    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that touch [first, end)."""
        return searching.aborted(self._segments, first, end)

    @guarded
    def offset_for_time(self, timestamp: int, limit: int) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record below `limit` that is not older than `timestamp`."""
        return searching.offset_for_time(self._segments, timestamp, self.log_start, limit, self.written)

    @guarded
    def max_timestamp(self) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the newest record; the first one when several are."""
        return searching.max_timestamp(self._segments)

    # -- flushing

    @guarded
    def files_to_sync(self) -> list[Syncable]:
        """What to sync, off the loop and in this order, to make everything up to `written` durable.

        `mark_flushed` comes after. Names go first: a segment that a truncation removed must be gone for good before
        the truncated bytes of the one before it are.
        """
        active = self._segments.active
        if self._only_appended and active.base <= self.flushed:
            return [pinned(active.file)] if self.flushed < self.written else []
        items: list[Syncable] = []
        if self._names_dirty:
            items.append(DirectorySync(self.files, self.directory))
        if self._parent_dirty:
            items.append(DirectorySync(self.files, self.directory.rpartition("/")[0]))
        items += [PathSync(self.files, path) for path in self._unsynced_paths + self._snapshots.unsynced]
        self._unsynced_paths.clear()
        self._snapshots.unsynced.clear()
        cut = [segment for segment in self._cut_segments + self._seals if segment in self._segments]
        self._cut_segments.clear()
        self._seals_handed = len(self._seals)
        if self.flushed < self.written or self._names_dirty or cut:
            for segment in dict.fromkeys(cut + self._segments.since(self.flushed)):
                items.append(pinned(segment.file))
                if segment is not self._segments.active:
                    # An active segment's indexes need no sync: recovery makes them again.
                    segment.save()
                    items += [pinned(segment.offsets.file), pinned(segment.times.file)]
                    items += [pinned(segment.aborted.file)] if segment.aborted.present else []
        if self.epochs.dirty:
            path = f"{self.directory}/{LEADER_EPOCHS}"
            items.append(TextWrite(self.files, path, LeaderEpochCheckpoint.text(self.epochs.entries())))
            self.epochs.dirty = False
        self._names_dirty = self._parent_dirty = False
        return items

    @property
    def _only_appended(self) -> bool:
        """Whether nothing happened since the last sync but appends, as nearly always."""
        return not (
            self._names_dirty
            or self._parent_dirty
            or self._unsynced_paths
            or self._snapshots.unsynced
            or self._cut_segments
            or self._seals
            or self.epochs.dirty
        )

    def mark_flushed(self, to: Offset) -> None:
        """Everything below `to` is durable: `to` was `written` when `files_to_sync` was called, and all are synced."""
        del self._seals[: self._seals_handed]
        self._seals_handed = 0
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
        gone = [segment for segment in self._segments.since(to) if segment.base > to]
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone, None)
        active = self._segments.active
        holding = active.find(to)
        if holding is not None:
            to = Offset(min(to, holding.base))
        active.truncate(to, now)
        active.activate()
        # It may be sealed before the next flush, which looks only at what lies behind the recovery point.
        self._cut_segments.append(active)
        self.epochs.truncate_from_end(to)
        self._set_end(to)
        self.log_start = Offset(min(self.log_start, to))
        self._reload_producers(now)
        return True

    @guarded
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

    def _reload_producers(self, now: Millis) -> None:
        self._snapshots.load(self.producers, start=self.log_start, end=self.next, now=now)
        recovery.replay(self.producers, self._segments, self.next)
        self.producers.replicated_to(self.committed)

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
