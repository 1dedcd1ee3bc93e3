"""Cleans a compacted log: copies its sealed segments without the records that later ones replace.

Runs in a helper process: `CleanJob` in, `.cleaned` files beside the segments and a `CleanResult` out. The log swaps the
new segments in afterwards, in an order that a crash cannot break (C6); until then nothing that exists is touched.

Two passes. The first reads the dirty part and notes the last offset of each key. The second copies everything below the
end of the first, and asks `compaction_filter` what stays. Small neighbours become one segment.

C1 offsets never change. C2 the latest value of every key below `clean_end` survives. C3 tombstones stay for
`delete_retention_ms` after the pass that first met them. C4 records keep their order. C5 the last batch of every active
producer survives, and the last batch of the pass, if only as a header.

Every batch is summed before it is used: a flipped bit must not get a new, good checksum. Corrupt stops the pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.kernels import BadBatch, BadRecord, BatchHeader, crc_holds, index_records
from penstock.model.errors import Corrupt
from penstock.model.ids import Millis
from penstock.model.ports import File, Files
from penstock.protocol.batch import CONTROL, payload_of
from penstock.protocol.wire import Malformed
from penstock.storage.batch_walk import Found, walk_batches
from penstock.storage.clean_job import CleanedSegment, CleanJob, CleanResult, LastOfProducer, SegmentFacts
from penstock.storage.compaction_filter import BatchFilter, TransactionWalk
from penstock.storage.names import CLEANED, LOG, OFFSET_INDEX, SEGMENT_SUFFIXES, TIME_INDEX, segment_file
from penstock.storage.offset_map import OffsetMap
from penstock.storage.segment import Segment
from penstock.storage.transaction_index import AbortedTransaction

__all__ = ["CleanJob", "CleanResult", "CleanedSegment", "LastOfProducer", "SegmentFacts", "clean"]

_RELATIVE_MAX = (1 << 31) - 1
_WRITE_BYTES = 1 << 20


def clean(files: Files, directory: str, job: CleanJob) -> CleanResult:
    """One pass over the log in `directory`. Leaves no `.cleaned` file behind when it fails."""
    pass_ = _Pass(files, directory, job)
    try:
        return pass_.run()
    except (BadBatch, BadRecord, Malformed) as broken:
        pass_.discard()
        raise Corrupt(*pass_.reading, str(broken)) from broken
    except BaseException:
        pass_.discard()
        raise


class _Pass:
    """The state of one cleaning pass."""

    def __init__(self, files: Files, directory: str, job: CleanJob) -> None:
        self.files, self.directory, self.job = files, directory, job
        self.map = OffsetMap(job.dedupe_buffer_bytes, job.load_factor)
        self.made: list[CleanedSegment] = []
        self.reading = (directory, 0)  # the file and position of the batch at hand, for whoever has to look at it
        self.records_before = self.records_after = 0

    def run(self) -> CleanResult:
        full = self._gather_keys()
        end = self.map.latest + 1
        groups = self._groups([segment for segment in self.job.segments if segment.base < end])
        copier = _Copier(self)
        for group in groups:
            # Named first: what goes wrong while it is written must find it to clear it away.
            self.made.append(CleanedSegment(group[0].base, 0, [segment.base for segment in group]))
            self.made[-1] = CleanedSegment(group[0].base, copier.copy(group), self.made[-1].replaces)
        self.files.sync_dir(self.directory)
        return CleanResult(
            segments=self.made,
            first_dirty=max(end, self.job.first_dirty),
            full=full,
            keys=len(self.map),
            bytes_before=sum(segment.size for group in groups for segment in group),
            bytes_after=sum(made.size for made in self.made),
            records_before=self.records_before,
            records_after=self.records_after,
            keyless_dropped=copier.filter.keyless_dropped,
        )

    def discard(self) -> None:
        for made in self.made:
            remove_cleaned(self.files, self.directory, made.base)

    def path(self, base: int, suffix: str) -> str:
        return f"{self.directory}/{segment_file(base, suffix)}"

    def batches(self, segment: SegmentFacts) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Every batch of a segment, summed. Corrupt when one is broken or the segment does not end with a batch."""
        file = self.files.open(self.path(segment.base, LOG), writable=False)
        try:
            position = 0
            for found in walk_batches(file, 0, segment.size):
                header, position = found.header, found.position
                self.reading = file.path, position
                batch = _bytes_of(file, found)
                if not crc_holds(batch, 0, header.size):
                    raise Corrupt(file.path, position, "the checksum of a batch does not hold")
                yield header, batch
                position += header.size
            self.reading = file.path, position
            if position != segment.size:
                raise BadBatch(f"{segment.size - position} bytes are no whole batch")
        finally:
            file.close()

    # -- the first pass

    def _gather_keys(self) -> bool:
        """Notes the last offset of each key from `first_dirty` on. True when the map was full before the end."""
        job = self.job
        aborted = [each for each in job.aborted if each.last >= job.first_dirty]
        transactions = TransactionWalk(aborted, kept=lambda _: None)
        dirty = [
            (segment, end)
            for segment, end in zip(job.segments, self._ends(), strict=True)
            if end > job.first_dirty and segment.base < job.clean_end
        ]
        for segment, end in dirty:
            for header, batch in self.batches(segment):
                if header.last_offset >= job.clean_end:
                    end = min(end, header.base_offset)  # a batch is cleaned whole or not at all
                    break
                if header.last_offset >= job.first_dirty and not self._note(header, batch, transactions):
                    return True
            # Offsets may be missing at the end of a segment; the next pass need not look for them.
            self.map.reach(end)
        return False

    def _ends(self) -> list[int]:
        """Where each segment ends: at the next one, the last at the end of what may be cleaned."""
        following = [segment.base for segment in self.job.segments[1:]]
        return [*following, self.job.clean_end] if self.job.segments else []

    def _note(self, header: BatchHeader, batch: memoryview, transactions: TransactionWalk) -> bool:
        """Takes one batch into the map; False when there was no room for all of it."""
        payload = payload_of(batch, header) if header.record_count else b""
        spans = index_records(payload, header.record_count)
        entries: list[tuple[bytes, int]] = []
        if header.attributes & CONTROL:
            transactions.on_control(header, spans[0].key if spans else None)
        elif not transactions.on_data(header):
            base, first_dirty = header.base_offset, self.job.first_dirty
            offsets = ((span.key, base + span.offset_delta) for span in spans)
            entries = [(key, offset) for key, offset in offsets if key is not None and offset >= first_dirty]
        return self.map.take_in(entries, header.last_offset + 1)

    # -- which segments become one

    def _groups(self, segments: list[SegmentFacts]) -> list[list[SegmentFacts]]:
        """Neighbours that fit into one segment together, by log, by either index and by relative offset."""
        ends = dict(zip((segment.base for segment in self.job.segments), self._ends(), strict=True))
        groups: list[list[SegmentFacts]] = []
        log_bytes = index_bytes = time_bytes = 0
        for segment in segments:
            index = self.files.size(self.path(segment.base, OFFSET_INDEX))
            times = self.files.size(self.path(segment.base, TIME_INDEX))
            if (
                groups
                and log_bytes + segment.size <= self.job.segment_bytes
                and index_bytes + index <= self.job.segment_index_bytes
                and time_bytes + times <= self.job.segment_index_bytes
                and (segment.size == 0 or ends[segment.base] - 1 - groups[-1][0].base <= _RELATIVE_MAX)
            ):
                groups[-1].append(segment)
                log_bytes, index_bytes, time_bytes = log_bytes + segment.size, index_bytes + index, time_bytes + times
            else:
                groups.append([segment])
                log_bytes, index_bytes, time_bytes = segment.size, index, times
        return groups


class _Copier:
    """The second pass: copies group after group. Transactions are followed across groups."""

    def __init__(self, pass_: _Pass) -> None:
        job = pass_.job
        self._pass, self._job = pass_, job
        self._abort_at = {each.last: each for each in job.aborted}
        self._out: _Output | None = None
        transactions = TransactionWalk(job.aborted, self._keep_aborted)
        self.filter = BatchFilter(
            pass_.map,
            transactions,
            job.producers,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
        )

    def _keep_aborted(self, aborted: AbortedTransaction) -> None:
        assert self._out is not None, "markers are met while a segment is written"
        self._out.segment.aborted.append(aborted)

    def copy(self, group: list[SegmentFacts]) -> int:
        """Writes one new segment, syncs it, and gives it the age of the last old one. Returns its size."""
        files, job = self._pass.files, self._job
        base = group[0].base
        modified = files.mtime_ms(self._pass.path(group[-1].base, LOG))
        out = self._out = _Output(files, self._pass.directory, base, job)
        for segment in group:
            for header, batch in self._pass.batches(segment):
                if header.last_offset < job.clean_end:
                    self._copy_batch(header, batch, out)
                else:
                    self._copy_as_it_is(header, batch, out)
        out.finish(modified)
        self._out = None
        return out.segment.size

    def _copy_batch(self, header: BatchHeader, batch: memoryview, out: _Output) -> None:
        kept = self.filter.keep(header, batch)
        self._pass.records_before += kept.records_before
        self._pass.records_after += kept.records_after
        if kept.data is not None:
            out.write(kept.data, header.last_offset, kept.max_timestamp)

    def _copy_as_it_is(self, header: BatchHeader, batch: memoryview, out: _Output) -> None:
        """What lies above `clean_end` in a segment that begins below it."""
        self._pass.records_before += header.record_count
        self._pass.records_after += header.record_count
        out.write(batch, header.last_offset, header.max_timestamp)
        aborted = self._abort_at.get(header.last_offset)
        if aborted is not None and header.attributes & CONTROL:
            out.segment.aborted.append(aborted)


class _Output:
    """A segment in the making. Batches are written together, a megabyte at a time."""

    def __init__(self, files: Files, directory: str, base: int, job: CleanJob) -> None:
        remove_cleaned(files, directory, base)  # of a pass that was killed
        self._files, self._interval_bytes = files, job.index_interval_bytes
        self.segment = Segment(files, directory, base, size=0, created_ms=job.now_ms, has_aborted=False, mark=CLEANED)
        files.open(self.segment.path(LOG), create=True).close()
        self.segment.reset_indexes()
        self._waiting = bytearray()

    def write(self, batch: bytes | bytearray | memoryview, last: int, max_timestamp: int) -> None:
        position = self.segment.size + len(self._waiting)
        self.segment.note(position, len(batch), last, max_timestamp, self._interval_bytes)
        self._waiting += batch
        if len(self._waiting) >= _WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self.segment.size += self.segment.file.pwritev((self._waiting,), self.segment.size)
            self._waiting = bytearray()

    def finish(self, modified_ms: Millis) -> None:
        self._flush()
        segment = self.segment
        segment.seal()
        segment.save()
        segment.file.sync()
        segment.offsets.file.sync()
        segment.times.file.sync()
        if segment.aborted.present:
            segment.aborted.file.sync()
        segment.close()
        for suffix in (LOG, OFFSET_INDEX, TIME_INDEX):
            # Retention and the compaction lag go by the age of the records, not of the copy.
            self._files.set_mtime_ms(segment.path(suffix), modified_ms)


def _bytes_of(file: File, found: Found) -> memoryview:
    if found.data is None:
        return memoryview(file.pread(found.header.size, found.position))
    return memoryview(found.data)[found.at : found.at + found.header.size]


def remove_cleaned(files: Files, directory: str, base: int) -> None:
    """Clears away the files of a cleaned segment that will not be used."""
    for suffix in SEGMENT_SUFFIXES:
        path = f"{directory}/{segment_file(base, suffix)}{CLEANED}"
        if files.exists(path):
            files.remove(path)
