"""Opening a partition directory: clear away what an interrupted change left, verify what was not flushed.

After a clean stop nothing is scanned: the end is found with the last index entry. After any other stop every batch from
the segment of the recovery point on is verified (checksum, size, rising offsets), the log is cut at the first bad byte,
later segments go, and indexes, producer state and epochs are made again on the way. Segments below the recovery point
were flushed and are not read, so a bit that flipped there is served as it is and the client's checksum finds it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from penstock.kernels import BadBatch
from penstock.model.errors import Corrupt
from penstock.model.ids import Epoch, Millis, Offset
from penstock.model.ports import File, Files
from penstock.storage.batch_walk import Found, glance_batches, intact_batches, walk_batches
from penstock.storage.checkpoints import EpochStart, LeaderEpochCheckpoint
from penstock.storage.epochs import Epochs
from penstock.storage.names import (
    CLEANED,
    DELETED,
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    SegmentFile,
    parse_segment_file,
    segment_file,
)
from penstock.storage.producers import CONTROL, Producers
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.settings import LogSettings
from penstock.storage.snapshot_files import SnapshotFiles


@dataclass(slots=True)
class Loaded:
    """A partition directory as it was found, in order again."""

    segments: Segments
    producers: Producers
    snapshots: SnapshotFiles
    epochs: Epochs
    log_start: Offset
    end: Offset
    recovery_point: Offset
    scanned_bytes: int
    cut_bytes: int
    gapless: bool


def load(
    files: Files,
    directory: str,
    settings: LogSettings,
    producers: Producers,
    *,
    now: Millis,
    clean: bool,
    recovery_point: int,
    log_start: int,
    gapless: bool = False,
) -> Loaded:
    """Everything a log needs from its directory. `clean` says that the log was closed properly last time.

    `gapless` says that no offset was ever left out: then a segment that does not begin where the one before it ends
    shows that the end of that one is lost, and what follows must go too, or producers' order would be lost with it.
    """
    found = [parsed for name in files.listdir(directory) if (parsed := parse_segment_file(name))]
    if any(file.mark for file in found):
        # What a cleaning left out leaves gaps.
        gapless = gapless and not any(file.mark in (CLEANED, SWAP) for file in found)
        finish_interrupted(files, directory, found)
        found = [parsed for name in files.listdir(directory) if (parsed := parse_segment_file(name))]
    loader = _Loader(files, directory, settings, producers, now, found, gapless, clean)
    return loader.load(clean, recovery_point, log_start)


def finish_interrupted(files: Files, directory: str, found: list[SegmentFile]) -> None:
    """Drops deleted and half-cleaned files; a replacement whose files all carry `.swap` is carried through."""

    def path(file: SegmentFile) -> str:
        return f"{directory}/{segment_file(file.base, file.kind)}{file.mark}"

    # Cleaned files are renamed to swap files from the last segment to the first: as long as one is left, the swap
    # files at or behind it belong to a replacement that was not decided yet.
    undecided = min((file.base for file in found if file.mark == CLEANED), default=None)
    swaps = []
    for file in found:
        if file.mark == SWAP and (undecided is None or file.base < undecided):
            swaps.append(file)
        elif file.mark:
            files.remove(path(file))
    logs = [file for file in swaps if file.kind == LOG]
    if logs:
        low = min(file.base for file in logs)
        high = max(_end_without_index(files.open(path(file), writable=False), file.base) for file in logs)
        for file in found:
            if not file.mark and file.kind != SNAPSHOT and low <= file.base < high:
                files.remove(path(file))
    for file in swaps:
        files.rename(path(file), f"{directory}/{segment_file(file.base, file.kind)}")
    files.sync_dir(directory)


def _end_without_index(file: File, base: int) -> int:
    end = base
    for batch in glance_batches(file, 0, file.size()):
        end = batch.last + 1
    file.close()
    return end


def replay(producers: Producers, segments: Segments, end: int) -> None:
    """Feeds the batches in [`producers.end`, `end`) to the producer state. Transaction indexes stay as they are.

    Deleted records may end inside a batch, which is still there: its producer is known by it.
    """
    for segment in segments.since(producers.end):
        if segment.base >= end or not segment.size:
            continue
        first = segment.find(producers.end)
        if first is None:
            continue
        for batch in walk_batches(segment.file, first.position, segment.size):
            header = batch.header
            if header.base_offset >= end:
                break
            if header.producer_id >= 0 and header.last_offset >= producers.end:
                producers.apply(header, header.base_offset, batch_bytes(segment, batch))
    producers.end = Offset(end)


def batch_bytes(segment: Segment, batch: Found) -> memoryview:
    """The bytes of a control batch; only those are looked into."""
    header = batch.header
    if not header.attributes & CONTROL:
        return memoryview(b"")
    if batch.data is None:
        return memoryview(segment.file.pread(header.size, batch.position))
    return memoryview(batch.data)[batch.at : batch.at + header.size]


class _Loader:
    def __init__(
        self,
        files: Files,
        directory: str,
        settings: LogSettings,
        producers: Producers,
        now: Millis,
        found: list[SegmentFile],
        gapless: bool,
        clean: bool,
    ) -> None:
        self.gapless = gapless
        self.clean = clean
        self.files = files
        self.directory = directory
        self.settings = settings
        self.producers = producers
        self.now = now
        self.scanned_bytes = 0
        self.cut_bytes = 0
        self.cut_segments: list[Segment] = []
        self.snapshots = SnapshotFiles(files, directory, [file.base for file in found if file.kind == SNAPSHOT])
        self.epochs = Epochs(self._read_epochs())
        self.without_index: list[Segment] = []
        self.segments = Segments(self._open_segments(found))

    def load(self, clean: bool, recovery_point: int, log_start: int) -> Loaded:
        recovered = not clean
        if recovered:
            self._recover_from(recovery_point, log_start)
        for segment in self.without_index:
            self._rebuild_indexes(segment)
        end = self._end_or_none()
        if end is None and len(self.segments):
            # A clean stop was claimed, and yet the last segment does not end with a whole batch.
            recovered = True
            self._recover_from(self.segments.active.base, log_start)
            end = self._end_or_none()
        while end is not None and recovered and max(log_start, recovery_point) > end:
            # A checkpoint that speaks of more than there is was written for another log of this name, or for one whose
            # end is lost. What is here is all that there is, and nobody can say what of it was flushed.
            log_start, recovery_point = (0 if log_start > end else log_start), 0
            self.epochs = Epochs(self._read_epochs())
            self._recover_from(recovery_point, log_start)
            end = self._end_or_none()
        if end is None:
            end = log_start
            self.segments.add(Segment.create(self.files, self.directory, end, self.now))
        if not recovered and (epochs := self.epochs.entries()):
            # A start that moved took the epochs before it along, and a clean stop wrote both down. In doubt records
            # are kept: what one replica that leads believes to be trimmed goes from the others too.
            log_start = min(log_start, epochs[0].start)
        start = max(log_start if log_start <= end else 0, self.segments[0].base)
        self.epochs.truncate_from_end(end)
        self.epochs.truncate_from_start(start)
        self._load_producers(start, end, clean and not recovered)
        self._make_cuts_durable()
        return Loaded(
            self.segments, self.producers, self.snapshots, self.epochs, Offset(start), Offset(end),
            Offset(end if clean and not recovered else min(recovery_point, end)), self.scanned_bytes, self.cut_bytes,
            self.gapless,
        )  # fmt: skip

    def _read_epochs(self) -> list[EpochStart]:
        try:
            return LeaderEpochCheckpoint(self.files, f"{self.directory}/{LEADER_EPOCHS}").read()
        except Corrupt:
            # Recovery finds the epochs of recent batches again; a replica asks its leader about the others.
            return []

    def _open_segments(self, found: list[SegmentFile]) -> list[Segment]:
        kinds: dict[int, set[str]] = {}
        for file in found:
            kinds.setdefault(file.base, set()).add(file.kind)
        segments = []
        last = max((base for base, present in kinds.items() if LOG in present), default=-1)
        for base, present in kinds.items():
            if LOG in present:
                segments.append(self._open_segment(base, present))
                continue
            if self.clean and base < last and present - {SNAPSHOT}:
                # A crash leaves indexes of a segment that was going; a stop leaves a segment whole or not at all.
                raise Corrupt(
                    f"{self.directory}/{segment_file(base, LOG)}", 0,
                    "the file is gone and its indexes are here; restore it from a copy, or remove the partition's "
                    "directory to have it copied from another replica",
                )  # fmt: skip
            for kind in present - {SNAPSHOT}:
                self.files.remove(f"{self.directory}/{segment_file(base, kind)}")
        return segments

    def _open_segment(self, base: int, present: set[str]) -> Segment:
        size = self.files.size(f"{self.directory}/{segment_file(base, LOG)}")
        segment = Segment(
            self.files, self.directory, base, size=size, created_ms=self.now, has_aborted=TRANSACTION_INDEX in present
        )
        segment.interval_bytes = self.settings.index_interval_bytes
        if not size:
            segment.reset_indexes()
        elif OFFSET_INDEX not in present or TIME_INDEX not in present:
            self.without_index.append(segment)
        return segment

    def _rebuild_indexes(self, segment: Segment) -> None:
        self.scanned_bytes += segment.size
        # The end of the log is looked at next, and finds nonsense too; a reader of an earlier segment is told.
        with suppress(Corrupt):
            segment.rebuild_indexes()
        segment.offsets.seal()

    def _end_or_none(self) -> int | None:
        """The log's end; None when there is no segment, or the last one does not end with a whole batch."""
        if not len(self.segments):
            return None
        segment = self.segments.active
        if not segment.size:
            return segment.base
        if segment.offsets.doubtful(segment.size) or segment.times.doubtful():
            self._rebuild_indexes(segment)
        try:
            return segment.end()
        except (Corrupt, BadBatch):
            return None

    def _recover_from(self, recovery_point: int, log_start: int) -> None:
        if not len(self.segments):
            return
        self._cut_stale(recovery_point)
        unflushed = self.segments.since(recovery_point)
        start = max(log_start, self.segments[0].base)
        self.snapshots.load(self.producers, start=start, end=max(start, unflushed[0].base), now=self.now)
        if self.producers.end < unflushed[0].base:
            replay(self.producers, self.segments, unflushed[0].base)
        end = 0
        for index, segment in enumerate(unflushed):
            if segment.base < end or (self.gapless and index and segment.base > end):
                # A truncation had removed it, and the crash undid that: its offsets were given out again since. Or
                # the crash took the end of the one before it.
                self._drop(unflushed[index:])
                return
            self.producers.end = max(self.producers.end, Offset(segment.base))
            self.snapshots.take(self.producers)
            cut_bytes = self.cut_bytes
            end = self._recover(segment)
            if self.cut_bytes > cut_bytes:
                self._drop(unflushed[index + 1 :])
                return

    def _cut_stale(self, recovery_point: int) -> None:
        """Cuts a flushed segment where the next one begins, if a crash undid the truncation that made room for it."""
        index = self.segments.floor(recovery_point)
        if index == 0:
            return
        segment, following = self.segments[index - 1], self.segments[index]
        try:
            if segment.end() > following.base:
                self.cut_bytes += segment.truncate(following.base, self.now)
                self.cut_segments.append(segment)
                segment.seal()
        except (Corrupt, BadBatch):
            # A flushed segment that does not end with a whole batch is served up to there.
            return

    def _make_cuts_durable(self) -> None:
        """What another power cut brought back would lie below a recovery point that has passed it by then.

        Names go first, as in life: a segment that was dropped must not come back behind one that was cut.
        """
        if self.cut_bytes:
            self.files.sync_dir(self.directory)
        for segment in self.cut_segments:
            if segment in self.segments:
                segment.file.sync()

    def _drop(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.cut_bytes += segment.size
            self._delete(segment)

    def _recover(self, segment: Segment) -> int:
        """Verifies a segment, cuts it at the first bad byte and makes its indexes again; returns where it ends."""
        interval_bytes = self.settings.index_interval_bytes
        if segment in self.without_index:
            self.without_index.remove(segment)
        segment.reset_indexes()
        segment.aborted.start_over()
        valid = 0
        expected = segment.base
        for found in intact_batches(segment.file, 0, segment.size):
            header = found.header
            if header.base_offset < expected or header.last_offset - segment.base >= 1 << 31:
                break
            segment.note(found.position, header.size, header.last_offset, header.max_timestamp, interval_bytes)
            valid = found.position + header.size
            expected = header.last_offset + 1
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(Epoch(header.leader_epoch), Offset(header.base_offset))
            if header.producer_id >= 0 and header.last_offset >= self.producers.end:
                aborted = self.producers.apply(header, header.base_offset, batch_bytes(segment, found))
                if aborted is not None:
                    segment.aborted.append(aborted)
        self.scanned_bytes += segment.size
        self.producers.end = max(self.producers.end, Offset(expected))
        cut_bytes = segment.size - valid
        if cut_bytes:
            segment.file.truncate(valid)
            segment.size = valid
            self.cut_bytes += cut_bytes
            self.cut_segments.append(segment)
        segment.seal()
        return expected

    def _delete(self, segment: Segment) -> None:
        self.segments.remove(segment)
        if segment in self.without_index:
            self.without_index.remove(segment)
        self.snapshots.remove(segment.base)
        for path in segment.move(mark=DELETED):
            if self.files.exists(path):
                self.files.remove(path)

    def _load_producers(self, start: int, end: int, trusted: bool) -> None:
        if trusted and start == end and not self.snapshots.offsets():
            # There is nothing to remember; else a clean stop leaves a snapshot, and one that is gone is made again.
            self.producers.clear(Offset(end))
            self.snapshots.start_advanced(end)
            return
        self.snapshots.remove_strays(segment.base for segment in self.segments)
        if self.producers.end != end or self.producers.end == 0:
            self.snapshots.load(self.producers, start=start, end=end, now=self.now)
            replay(self.producers, self.segments, end)
        self.snapshots.take(self.producers)
