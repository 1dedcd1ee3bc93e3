"""What of a log is not durable yet, besides the batches behind its recovery point.

A log that only appends owes the disk nothing but the active segment's bytes. Everything else that must be synced is
noted here when it happens, and handed out together by `hand_out`.
"""

from __future__ import annotations

from penstock.model.ids import Offset
from penstock.model.ports import Files
from penstock.storage.checkpoints import LeaderEpochCheckpoint
from penstock.storage.epochs import Epochs
from penstock.storage.flushing import DirectorySync, PathSync, Syncable, TextWrite, pinned
from penstock.storage.names import LEADER_EPOCHS
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.snapshot_files import SnapshotFiles


class Unsynced:
    """Names, small files, segments that were cut, and sealed segments with their indexes.

    `seals` are sealed segments whose indexes may not be durable. They stay until the sync that took care of them is
    done, because the recovery point to write down depends on them.
    """

    __slots__ = (
        "_epochs", "_files", "_segments", "_snapshots", "cut", "names", "parent", "paths", "seals", "seals_handed",
    )  # fmt: skip

    def __init__(self, files: Files, segments: Segments, snapshots: SnapshotFiles, epochs: Epochs) -> None:
        self._files, self._segments, self._snapshots, self._epochs = files, segments, snapshots, epochs
        self.names = False  # files came, went or were renamed in the log's own directory
        self.parent = False  # so did the log's directory in the one above
        self.paths: list[str] = []
        self.cut: list[Segment] = []
        self.seals: list[Segment] = []
        self.seals_handed = 0  # how many of them the sync that runs takes care of

    def __bool__(self) -> bool:
        """False when nothing happened since the last sync but appends, as nearly always."""
        return bool(
            self.names
            or self.parent
            or self.paths
            or self._snapshots.unsynced
            or self.cut
            or self.seals
            or self._epochs.dirty
        )

    def all_names(self) -> None:
        """The log's directory and what is in it may be unknown to the disk."""
        self.names = self.parent = True

    def first_unsynced_base(self) -> Offset:
        """Indexes of segments from here on may not be durable: an active segment's are never synced in its life."""
        return Offset((self.seals[0] if self.seals else self._segments.active).base)

    def hand_out(self, directory: str, flushed: Offset, written: Offset) -> list[Syncable]:
        """Everything to sync, in the order in which it must reach the disk; it is not owed any more afterwards.

        Names go first: a segment that a truncation removed must be gone for good before the truncated bytes of the one
        before it are.
        """
        items: list[Syncable] = []
        if self.names:
            items.append(DirectorySync(self._files, directory))
        if self.parent:
            items.append(DirectorySync(self._files, directory.rpartition("/")[0]))
        items += [PathSync(self._files, path) for path in self.paths + self._snapshots.unsynced]
        self.paths.clear()
        self._snapshots.unsynced.clear()
        cut = [segment for segment in self.cut + self.seals if segment in self._segments]
        self.cut.clear()
        self.seals_handed = len(self.seals)
        if flushed < written or self.names or cut:
            for segment in dict.fromkeys(cut + self._segments.since(flushed)):
                items += self._files_of(segment)
        if self._epochs.dirty:
            path = f"{directory}/{LEADER_EPOCHS}"
            items.append(TextWrite(self._files, path, LeaderEpochCheckpoint.text(self._epochs.entries())))
            self._epochs.dirty = False
        self.names = self.parent = False
        return items

    def _files_of(self, segment: Segment) -> list[Syncable]:
        if segment is self._segments.active:
            # An active segment's indexes need no sync: recovery makes them again.
            return [pinned(segment.file)]
        segment.save()
        files = [segment.file, segment.offsets.file, segment.times.file]
        if segment.aborted.present:
            files.append(segment.aborted.file)
        return [pinned(file) for file in files]

    def synced(self) -> None:
        """What was handed out last is durable."""
        del self.seals[: self.seals_handed]
        self.seals_handed = 0

    def move(self, old: str, new: str) -> None:
        """The log's directory was renamed."""
        self.paths = [new + path[len(old) :] for path in self.paths]
        self.all_names()
