"""One segment: a log file and its indexes, named after the offset it begins at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from zlib import crc32

from penstock.kernels import BadBatch
from penstock.model.errors import Corrupt
from penstock.model.ports import File, Files
from penstock.storage import offset_index, time_index
from penstock.storage.batch_walk import Glance, glance_batches, walk_batches
from penstock.storage.names import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    segment_file,
)
from penstock.storage.offset_index import OffsetIndex
from penstock.storage.settings import LogSettings
from penstock.storage.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from penstock.storage.transaction_index import TransactionIndex

_RELATIVE_MAX = (1 << 31) - 1
_UNKNOWN = -2


class Segment:
    """Appends go to the last segment of a log only; `size` is where the next byte goes."""

    __slots__ = (
        "_by_record_time", "_bytes_max", "_entries_left", "_file", "_first_timestamp", "_latest", "_limits_of",
        "_offset_max", "_preallocated", "_time_max", "aborted", "base", "bytes_since_entry", "created_ms", "directory",
        "files", "interval_bytes", "mark", "offsets", "size", "times", "whole",
    )  # fmt: skip

    def __init__(
        self, files: Files, directory: str, base: int, *, size: int, created_ms: int, has_aborted: bool, mark: str = ""
    ) -> None:
        self.files = files
        self.directory = directory
        self.base = base
        self.size = size
        self.created_ms = created_ms
        self.bytes_since_entry = 0
        # How far apart index entries are when the indexes must be made again.
        self.interval_bytes = 4096
        self.mark = mark
        # Whether it is known to end where the next one begins; see `check_end`.
        self.whole = False
        self.offsets = OffsetIndex(files, self.path(OFFSET_INDEX), base)
        self.times = TimeIndex(files, self.path(TIME_INDEX), base)
        self.aborted = TransactionIndex(files, self.path(TRANSACTION_INDEX), has_aborted)
        self._preallocated = False
        self._file: File | None = None
        self._first_timestamp = _UNKNOWN
        self._latest: TimestampOffset | None = None
        # Within these limits a batch belongs here for certain; they hold for one object of settings.
        self._limits_of: LogSettings | None = None
        self._bytes_max = self._offset_max = self._time_max = self._entries_left = 0
        self._by_record_time = False

    @classmethod
    def create(cls, files: Files, directory: str, base: int, now: int, preallocate_bytes: int = 0) -> Segment:
        """Makes the files of a new, empty segment. What an earlier life left under these names is emptied."""
        segment = cls(files, directory, base, size=0, created_ms=now, has_aborted=False)
        file = segment._file = files.open(segment.path(LOG), create=True)
        if file.size():
            file.truncate(0)
        if preallocate_bytes:
            file.truncate(preallocate_bytes)
            segment._preallocated = True
        segment.reset_indexes()
        return segment

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{segment_file(self.base, suffix)}{self.mark}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self.files.open(self.path(LOG))
        return self._file

    # -- appending

    def must_roll(
        self, batch_bytes: int, last: int, timestamp: int, now: int, settings: LogSettings, pending_bytes: int = 0
    ) -> bool:
        """Whether a batch with these facts belongs into a new segment. `pending_bytes` are noted, not written yet."""
        size = self.size + pending_bytes
        if (
            settings is self._limits_of
            and size + batch_bytes <= self._bytes_max
            and last <= self._offset_max
            and (timestamp if self._by_record_time else now) <= self._time_max
        ):
            return False
        if size == 0:
            return last - self.base > _RELATIVE_MAX
        self._find_limits(settings)
        return (
            size + batch_bytes > self._bytes_max
            or last > self._offset_max
            or (timestamp if self._by_record_time else now) > self._time_max
            or self._entries_left <= 0
        )

    def _open_ms(self, settings: LogSettings) -> int:
        """For how long the segment may take batches."""
        segment_ms = settings.segment_ms
        if settings.compacts and 0 < settings.max_compaction_lag_ms < segment_ms:
            # Only sealed segments are cleaned, so the lag bounds how long one stays open.
            segment_ms = settings.max_compaction_lag_ms
        return segment_ms - self._jitter_ms(settings, segment_ms)

    def _find_limits(self, settings: LogSettings) -> None:
        """For a segment that has batches. With full indexes there are no limits to stay within."""
        first = self.first_timestamp
        # By record time when the first batch has one, so that replaying old data rolls as it did the first time.
        self._by_record_time = first >= 0
        self._time_max = (first if first >= 0 else self.created_ms) + self._open_ms(settings)
        self._bytes_max, self._offset_max = settings.segment_bytes, self.base + _RELATIVE_MAX
        self._entries_left = min(
            settings.segment_index_bytes // offset_index.ENTRY_BYTES - len(self.offsets),
            settings.segment_index_bytes // time_index.ENTRY_BYTES - 1 - len(self.times),
        )
        self._limits_of = settings if self._entries_left > 0 else None

    def append(self, data: bytes | bytearray | memoryview, last: int, timestamp: int, interval_bytes: int) -> None:
        """Writes one batch, then its index entry when enough bytes went by since the last one."""
        position = self.size
        size = (self._file or self.file).pwritev((data,), position)
        self.note(position, size, last, timestamp, interval_bytes)
        self.size = position + size

    def write(self, data: memoryview) -> None:
        """Writes batches that are noted already."""
        self.size += (self._file or self.file).pwritev((data,), self.size)

    def note(self, position: int, size: int, last: int, timestamp: int, interval_bytes: int) -> None:
        """Takes a batch at `position` into the indexes."""
        if position == 0:
            self._first_timestamp = timestamp
        latest = self._latest or self.latest()
        if timestamp > latest.timestamp:
            latest = self._latest = TimestampOffset(timestamp, last)
        if self.bytes_since_entry > interval_bytes:
            self.offsets.append(last, position)
            self.times.append_if_larger(latest.timestamp, latest.offset)
            self.bytes_since_entry = 0
            self._entries_left -= 1
            if self._entries_left <= 0:
                self._limits_of = None
        self.bytes_since_entry += size

    # -- what it holds

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 when there is none."""
        if self._first_timestamp == _UNKNOWN:
            first = next(glance_batches(self.file, 0, self.size), None) if self.size else None
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first.max_timestamp
        return self._first_timestamp

    def latest(self) -> TimestampOffset:
        """The largest timestamp in the segment and the last offset of the batch that has it."""
        if self._latest is None:
            self._latest = self._find_trusted_latest()
        return self._latest

    def _find_trusted_latest(self) -> TimestampOffset:
        """The last entry of the time index, if the batches say so too; else the indexes are made again.

        Retention goes by it: an entry that is too old would take records too soon, one that is too new would keep them
        for ever. The batch that the entry names and the end of the segment are looked at, and nothing between.
        """
        if not self.size:
            return self.times.last()
        with suppress(Corrupt):
            if not self.times.doubtful() and self._agrees(latest := self.times.last()):
                return latest
        try:
            self.rebuild_indexes()
        except (Corrupt, BadBatch):
            # What the batches before the bad one say is all that can be known.
            self.save()
        return self._latest or self.times.last()

    def _agrees(self, latest: TimestampOffset) -> bool:
        if not self._confirms(latest):
            return False
        return all(batch.max_timestamp <= latest.timestamp for batch in self._since(self.offsets.last()))

    def _confirms(self, entry: TimestampOffset) -> bool:
        """Whether the batch that an entry of the time index names has that time."""
        if entry.timestamp == NO_TIMESTAMP:
            return True
        batch = self.find(entry.offset)
        return batch is not None and batch.base <= entry.offset and batch.max_timestamp == entry.timestamp

    def largest_timestamp(self) -> int:
        """For retention: the largest record timestamp, or the file's time when no record has one."""
        timestamp = self.latest().timestamp
        return timestamp if timestamp >= 0 else self.files.mtime_ms(self.path(LOG))

    def find(self, offset: int) -> Glance | None:
        """The first batch that ends at `offset` or later; None when all end before."""
        for batch in self._since(self.offsets.lookup(offset)):
            if batch.last >= offset:
                return batch
        return None

    def batches_at(self, offset: int) -> Iterator[Glance]:
        """The batches from `offset` on, and maybe some before them."""
        return self._since(self.offsets.lookup(offset))

    def batches_newer(self, timestamp: int, start: int) -> Iterator[Glance]:
        """The batches from `start` on that may have a record that is not older, and maybe some before them."""
        entry = self.times.lookup(timestamp)
        if not self._confirms(entry):
            self.rebuild_indexes()
            entry = self.times.lookup(timestamp)
        # Every record up to the entry is too old.
        return self.batches_at(max(entry.offset, start))

    def end(self) -> int:
        """The offset after the last batch. Corrupt when bytes are left over behind it."""
        if self.size == 0:
            return self.base
        end, position = self.base, 0
        for batch in self._since(self.offsets.last()):
            end, position = batch.last + 1, batch.position + batch.size
        if position != self.size:
            raise Corrupt(self.path(LOG), position, f"{self.size - position} bytes are no whole batch")
        return end

    def check_end(self, end: int) -> None:
        """Corrupt when the segment, which gets no more batches, does not end at `end`: then records are missing.

        Bytes behind its last batch are nobody's, and go.
        """
        found, position, why = self.base, 0, "bytes that are no batch, or nothing"
        try:
            for batch in self._since(self.offsets.last()):
                found, position = batch.last + 1, batch.position + batch.size
        except Corrupt as broken:
            why = broken.why
        if found != end:
            raise Corrupt(self.path(LOG), position, f"{why}; there should be records up to offset {end - 1}")
        if position < self.size:
            self.file.truncate(position)
            self.size = position
        self.whole = True

    def cut(self, start: int, max_end: int, limit: int | None) -> Glance | int:
        """Where whole batches from `start` on end that fit before `max_end` and lie below offset `limit`.

        The answer is the first batch that is left out, or the file position when nothing is left out.
        """
        offset, floor = self.offsets.floor(max_end)
        if limit is not None:
            offset, floor = min(limit, offset), min(floor, self.offsets.lookup(limit)[1])
        position = start
        for batch in self._since((offset, floor)) if floor > start else glance_batches(self.file, start, self.size):
            if batch.position + batch.size > max_end or (limit is not None and batch.last >= limit):
                return batch
            position = batch.position + batch.size
        return position

    def _since(self, entry: tuple[int, int]) -> Iterator[Glance]:
        """The batches from an index entry on, if its batch really is there; else the indexes are made again.

        An index has no checksum, and nobody looks at all of it: what is used of it is looked at when it is used.
        """
        offset, position = entry
        if 0 < position < self.size:
            batches = glance_batches(self.file, position, self.size)
            with suppress(Corrupt):
                first = next(batches, None)
                if first is not None and self.base <= first.base and first.last <= offset:
                    return chain((first,), batches)
        if position:
            self.rebuild_indexes()
        return glance_batches(self.file, 0, self.size)

    # -- upkeep

    def seal(self) -> None:
        """The segment gets no more batches: its time index gets its last entry and the indexes leave memory."""
        self.close_time_index()
        self.save()
        self.offsets.seal()
        self.trim()

    def trim(self) -> None:
        """Gives back preallocated space that was not used."""
        if self._preallocated:
            self.file.truncate(self.size)
            self._preallocated = False

    def close_time_index(self) -> None:
        latest = self.latest()
        self.times.append_if_larger(latest.timestamp, latest.offset)
        self.times.save()
        self._limits_of = None

    def activate(self) -> None:
        """Gets ready for appends after it was opened or uncovered by a truncation."""
        self.offsets.activate()

    def save(self) -> None:
        """Everything held back in memory goes to the files, which are there from the first batch on; no sync."""
        if self.size:
            self.make_indexes()
        self.offsets.save()
        self.times.save()

    def make_indexes(self) -> None:
        """Makes the index files that are not there yet, empty."""
        self.offsets.file  # noqa: B018  # makes it
        self.times.file  # noqa: B018

    def truncate(self, offset: int, now: int) -> int:
        """Cuts the batch that holds `offset` and everything after it; returns the bytes that went."""
        first_gone = self.find(offset)
        self.offsets.truncate(offset)
        self.times.truncate(offset)
        self.aborted.truncate(offset)
        cut_bytes = 0
        if first_gone is not None:
            cut_bytes = self.size - first_gone.position
            self.size = first_gone.position
            self.file.truncate(self.size)
        if self.size == 0:
            self._first_timestamp = _UNKNOWN
            self.created_ms = now
        self.bytes_since_entry = 0
        self._limits_of = None
        self._latest = self._find_latest()
        return cut_bytes

    def _find_latest(self) -> TimestampOffset:
        latest = self.times.last()
        if not self._confirms(latest):
            self.rebuild_indexes()
            latest = self.times.last()
        for batch in self.batches_at(latest.offset):
            if batch.max_timestamp > latest.timestamp:
                latest = TimestampOffset(batch.max_timestamp, batch.last)
        return latest

    def indexes_doubtful(self) -> bool:
        return self.offsets.doubtful(self.size) or self.times.doubtful() or self.aborted.doubtful()

    def reset_indexes(self) -> None:
        """Empties offset and time index, to fill them with `note` again."""
        self.offsets.start_over()
        self.times.start_over()
        self._latest = TimestampOffset(NO_TIMESTAMP, self.base)
        self._limits_of = None
        self.bytes_since_entry = 0

    def rebuild_indexes(self) -> None:
        """Makes offset and time index again from the batches. Checksums are not looked at.

        Corrupt when there is something else than batches; then the indexes hold those before it.
        """
        self.reset_indexes()
        position = 0
        try:
            for found in walk_batches(self.file, 0, self.size):
                header = found.header
                self.note(found.position, header.size, header.last_offset, header.max_timestamp, self.interval_bytes)
                position = found.position + header.size
        except BadBatch as broken:
            raise Corrupt(self.path(LOG), position, str(broken)) from broken
        finally:
            self.close_time_index()
            self.save()

    def move(self, *, directory: str | None = None, mark: str | None = None) -> list[str]:
        """Renames all its files, or follows them after their directory was renamed. Returns the new paths.

        The log file goes first: without it the others are orphans, which the next start clears away.
        """
        self.close()
        self._limits_of = None  # the directory's name decides how much later than others it rolls
        old = {suffix: self.path(suffix) for suffix in SEGMENT_SUFFIXES}
        self.directory = directory if directory is not None else self.directory
        self.mark = mark if mark is not None else self.mark
        moved = []
        for suffix in SEGMENT_SUFFIXES:
            if mark is not None and (suffix == LOG or self.files.exists(old[suffix])):
                self.files.rename(old[suffix], self.path(suffix))
            moved.append(self.path(suffix))
        self.offsets.path, self.times.path, self.aborted.path = moved[1:]
        return moved

    def close(self) -> None:
        """Lets go of open files; they open again on demand."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.offsets.close()
        self.times.close()
        self.aborted.close()

    def _jitter_ms(self, settings: LogSettings, segment_ms: int) -> int:
        """Spread over segments so that a thousand logs made at one instant do not roll at one instant."""
        jitter_ms = min(settings.segment_jitter_ms, segment_ms)
        return crc32(f"{self.directory} {self.base}".encode()) % jitter_ms if jitter_ms > 0 else 0

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG)}, {self.size} bytes)"
