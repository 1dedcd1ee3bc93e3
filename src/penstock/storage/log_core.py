"""What every part of a log needs: its state, its ends, and what happens when the disk fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from penstock.model.errors import KAFKA_STORAGE_ERROR, Refused, StorageFailed
from penstock.model.ids import Millis, Offset, TopicPartition, Uuid
from penstock.model.ports import Files
from penstock.storage import recovery
from penstock.storage.epochs import Epochs
from penstock.storage.names import DELETED
from penstock.storage.producers import Producers
from penstock.storage.reading import OlderReads, RecentBatches
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.settings import LogSettings
from penstock.storage.snapshot_files import SnapshotFiles

P = ParamSpec("P")
R = TypeVar("R")
L = TypeVar("L", bound="LogCore")


def guarded(method: Callable[Concatenate[L, P], R]) -> Callable[Concatenate[L, P], R]:
    """Refuses on a log that failed, and makes a failed log of one whose disk fails."""

    @wraps(method)
    def with_guard(log: L, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if log.failure is not None:
            raise log.refusal()
        try:
            return method(log, *args, **kwargs)
        except OSError as error:
            raise log.fail(error) from error

    return with_guard


class LogCore:
    """State and invariants. `Log` adds what people call."""

    __slots__ = (
        "_cut_segments", "_doomed", "_names_dirty", "_older", "_opened_at", "_parent_dirty", "_recent", "_seals",
        "_seals_handed", "_segments", "_snapshots", "_unsynced_paths", "cleaned_to", "committed", "cut_bytes",
        "directory", "epochs", "failure", "files", "flushed", "home", "log_start", "messages_unflushed", "name", "next",
        "on_doomed", "on_sealed", "producers", "scanned_bytes", "settings", "topic_id", "written",
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
        self.committed = loaded.log_start
        # Where the last cleaning pass ended; None when there was none.
        self.cleaned_to: Offset | None = None
        self.messages_unflushed = 0
        self._names_dirty = self._parent_dirty = False
        self._unsynced_paths: list[str] = []
        self._cut_segments: list[Segment] = []
        # Sealed segments whose indexes may not be durable, and how many of them the sync that runs takes care of.
        self._seals: list[Segment] = []
        self._seals_handed = 0
        # End and active bytes when it was opened after a clean stop.
        self._opened_at = (Offset(-1), -1)
        self._doomed: list[tuple[int | None, list[str]]] = []
        self._older = OlderReads(self._segments)
        self._recent = RecentBatches(self.next, self._segments.active.size)
        if high_watermark <= self.next:
            # One behind the end is another log's, or of records that a crash took. Replication tells what is true.
            self.commit_to(Offset(high_watermark))

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
        unsynced = self._seals[0] if self._seals else self._segments.active
        return Offset(min(self.flushed, unsynced.base))

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

    # -- changing the set of segments

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
            self._seals.append(sealed)
        segment = Segment.create(self.files, self.directory, base, now, preallocate_bytes)
        self._segments.add(segment)
        self.producers.end = base
        self._snapshots.take(self.producers)
        self._recent = RecentBatches(base, 0)
        self._names_dirty = True
        if sealed.size and self.on_sealed is not None:
            self.on_sealed(sealed)
        return segment

    def _doom(self, segments: list[Segment], now: int | None, *, keep_snapshot_of: int = -1) -> None:
        """Renames the files of segments that left the log; `purge` removes them once nobody can be reading them."""
        for segment in segments:
            paths = segment.move(mark=DELETED)
            if segment.base != keep_snapshot_of:
                paths += self._snapshots.mark_deleted(segment.base)
            self._doomed.append((None if now is None else now + self.settings.file_delete_delay_ms, paths))
        if segments:
            self._older.forget()
            self._names_dirty = True
            if self.on_doomed is not None:
                self.on_doomed()

    @property
    def has_doomed(self) -> bool:
        """Whether files of deleted segments wait for `purge`."""
        return bool(self._doomed)

    def _set_end(self, end: Offset) -> None:
        self.next = self.written = end
        self.flushed = Offset(min(self.flushed, end))
        self.committed = Offset(min(self.committed, end))
        if self.cleaned_to is not None:
            self.cleaned_to = Offset(min(self.cleaned_to, end))
        self.messages_unflushed = self.written - self.flushed
        self._older.forget()
        self._recent = RecentBatches(end, self._segments.active.size)

    def move(self, directory: str) -> None:
        """Follows the directory after it was renamed."""
        for segment in self._segments:
            segment.move(directory=directory)
        self._snapshots.directory = directory
        self._doomed = [
            (due, [directory + path[len(self.directory) :] for path in paths]) for due, paths in self._doomed
        ]
        self._unsynced_paths = [directory + path[len(self.directory) :] for path in self._unsynced_paths]
        self.directory, self.home = directory, directory.rpartition("/")[0]
        self._names_dirty = self._parent_dirty = True
