"""The producer snapshots of a log: taken at each roll and at a clean stop, so that opening it replays little."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from contextlib import suppress

from penstock.model.errors import Corrupt
from penstock.model.ids import Millis, Offset
from penstock.model.ports import Files
from penstock.storage.names import DELETED, SNAPSHOT, segment_file
from penstock.storage.producer_snapshot import decode_snapshot, encode_snapshot
from penstock.storage.producers import Producers


class SnapshotFiles:
    """Knows which snapshots there are; each holds the state before its offset."""

    __slots__ = ("_files", "_last", "_offsets", "directory", "unsynced")

    def __init__(self, files: Files, directory: str, offsets: Iterable[int] = ()) -> None:
        self._files = files
        self.directory = directory
        self._offsets = sorted(offsets)
        # No snapshot is taken at or below this offset: it would tell nothing new.
        self._last = 0
        self.unsynced: list[str] = []

    def offsets(self) -> list[int]:
        return list(self._offsets)

    def path(self, offset: int) -> str:
        return f"{self.directory}/{segment_file(offset, SNAPSHOT)}"

    def take(self, producers: Producers) -> None:
        """Writes the state at `producers.end`, unless that was done; no sync."""
        if producers.end <= self._last:
            return
        path = self.path(producers.end)
        data = encode_snapshot(producers.records())
        file = self._files.open(path, create=True)
        file.pwritev((data,), 0)
        file.truncate(len(data))
        file.close()
        self.unsynced.append(path)
        if producers.end not in self._offsets:
            insort(self._offsets, producers.end)
        self._last = producers.end

    def load(self, producers: Producers, *, start: int, end: int, now: Millis) -> None:
        """Brings `producers` to the newest usable snapshot in (start, end]; they begin empty at `start` without one.

        Snapshots outside of that range describe a log that no longer is, and go; so do unreadable ones.
        """
        for offset in self.offsets():
            if offset > end or offset <= start:
                self.remove(offset)
        while self._offsets:
            offset = self._offsets[-1]
            try:
                records = decode_snapshot(self._files.read(self.path(offset)), self.path(offset))
            except (Corrupt, FileNotFoundError):
                self.remove(offset)
                continue
            producers.load(records, Offset(offset), now)
            self._last = offset
            return
        producers.clear(Offset(start))
        self._last = start

    def look(self, producers: Producers, *, start: int, end: int, now: Millis) -> None:
        """Like `load`, for a question about the past: nothing is removed, and the next snapshot is taken as before."""
        for offset in reversed(self._offsets):
            if start < offset <= end:
                with suppress(Corrupt, FileNotFoundError):
                    records = decode_snapshot(self._files.read(self.path(offset)), self.path(offset))
                    producers.load(records, Offset(offset), now)
                    return
        producers.clear(Offset(start))

    def remove_strays(self, bases: Iterable[int]) -> None:
        """Keeps the snapshots of segment bases, and of the others only the newest one when it is at the log's end."""
        kept = set(bases)
        strays = [offset for offset in self._offsets if offset not in kept]
        newest_base = max(kept, default=-1)
        for offset in strays[:-1]:
            self.remove(offset)
        if strays and strays[-1] < newest_base:
            self.remove(strays[-1])

    def remove(self, offset: int) -> None:
        if offset in self._offsets:
            self._offsets.remove(offset)
            try:
                self._files.remove(self.path(offset))
            except FileNotFoundError:
                return

    def mark_deleted(self, offset: int) -> list[str]:
        """Renames the snapshot of a segment that is going; returns what to remove later."""
        if offset not in self._offsets:
            return []
        self._offsets.remove(offset)
        target = self.path(offset) + DELETED
        try:
            self._files.rename(self.path(offset), target)
        except FileNotFoundError:
            return []
        return [target]

    def start_advanced(self, start: int) -> None:
        self._last = self._offsets[-1] if self._offsets else start

    def start_over(self, at: int) -> None:
        for offset in self.offsets():
            self.remove(offset)
        self._last = at
