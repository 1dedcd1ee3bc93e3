"""Finding whole batches without reading records: recent ones from memory, older ones with the index.

A reader that goes forward pays no search: where a read ended is remembered as the place where the next one begins.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from contextlib import suppress
from typing import NamedTuple

from penstock.model.errors import Corrupt
from penstock.model.ids import Offset
from penstock.model.ports import File
from penstock.storage.batch_walk import Glance, glance_batches
from penstock.storage.files import DiskFile
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments

_RECENT_MAX = 1024
_HINTS_MAX = 32


class FileSpan:
    """Bytes of a segment that nobody has read yet. While it lives the file cannot go away, even if it is removed."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file.pin() if isinstance(file, DiskFile) else file
        self.position = position
        self.size = size

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        """`size` bytes from `at` on, or all that are left."""
        left = self.size - at
        return self.file.pread(left if size is None else min(size, left), self.position + at)

    def fileno(self) -> int:
        """The descriptor to send from, or -1 for a file in memory."""
        return self.file.fileno()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"FileSpan({self.file.path}, {self.position}+{self.size})"


class Read(NamedTuple):
    """Whole batches, unread. `end` is the offset after them: the next one to ask for."""

    spans: list[FileSpan]
    size: int
    end: Offset


class RecentBatches:
    """Where the last batches of the active segment end: offsets and file positions, one pair for each boundary.

    Boundary 0 is where memory begins; batch *i* lies between boundaries *i* and *i + 1*.
    """

    __slots__ = ("offsets", "positions")

    def __init__(self, offset: int, position: int) -> None:
        self.offsets = array("q", (offset,))
        self.positions = array("q", (position,))

    def add(self, end: int, position: int) -> None:
        self.offsets.append(end)
        self.positions.append(position)
        if len(self.offsets) > _RECENT_MAX:
            del self.offsets[: _RECENT_MAX // 2]
            del self.positions[: _RECENT_MAX // 2]

    def read(self, file_of: Segment, offset: int, max_bytes: int, limit: int, at_least_one: bool) -> Read:
        """Like `Log.read`, for an offset that is not before boundary 0."""
        offsets, positions = self.offsets, self.positions
        first = bisect_right(offsets, offset) - 1
        start = positions[first]
        last = bisect_right(positions, start + max_bytes) - 1
        if offsets[last] > limit:
            last = bisect_right(offsets, limit) - 1
        if last <= first:
            if not at_least_one or offsets[first + 1] > limit:
                return Read([], 0, Offset(offset))
            last = first + 1
        size = positions[last] - start
        return Read([FileSpan(file_of.file, start, size)], size, Offset(offsets[last]))


class OlderReads:
    """Reads by index. Forget the hints whenever batches move: on truncation, deletion and compaction."""

    __slots__ = ("_hints", "_searched", "_segments")

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._hints: dict[int, tuple[Segment, int]] = {}
        self._searched: Segment | None = None

    def forget(self) -> None:
        self._hints.clear()
        self._searched = None

    def read(
        self, offset: int, max_bytes: int, limit: int, log_end: int, at_least_one: bool, *, gapless: bool = False
    ) -> Read:
        """Like `Log.read`. In a `gapless` log a segment that has lost its end is read up to there and then Corrupt."""
        segments = self._segments
        index = segments.floor(offset)
        while True:
            segment = segments[index]
            segment_end = segments.end_of(index, log_end)
            start = self._start(segment, offset)
            if gapless and not segment.whole and segment is not segments.active:
                try:
                    segment.check_end(segment_end)
                except Corrupt as damage:
                    return self._before(damage, segment, offset, start, max_bytes, limit)
            if start is not None:
                break
            # The rest of this segment was compacted away: what is asked for begins in the next one.
            index += 1
            if index == len(segments):
                return Read([], 0, Offset(offset))
        return self._whole_batches(segment, offset, start, max_bytes, limit, segment_end, at_least_one)

    def _start(self, segment: Segment, offset: int) -> int | None:
        hint = self._hints.get(offset)
        if hint is not None and hint[0] is segment:
            return hint[1]
        if offset <= segment.base:
            return 0 if segment.size else None
        self._remember(segment)
        batch = segment.find(offset)
        return batch.position if batch is not None else None

    def _whole_batches(
        self,
        segment: Segment,
        offset: int,
        start: int,
        max_bytes: int,
        limit: int,
        segment_end: int,
        at_least_one: bool,
    ) -> Read:
        end_position, end = segment.size, segment_end
        if limit < segment_end or end_position - start > max_bytes:
            self._remember(segment)
            bound = min(segment.size, start + max_bytes)
            stop = segment.cut(start, bound, limit if limit < segment_end else None)
            if isinstance(stop, Glance) and stop.position == start:
                # Not even the first batch fits.
                if not at_least_one or stop.last >= limit:
                    return Read([], 0, Offset(offset))
                end_position, end = start + stop.size, stop.last + 1
            elif isinstance(stop, Glance):
                end_position, end = stop.position, stop.base
            elif stop == start:
                raise Corrupt(segment.file.path, start, "no whole batch here")
            self._hint(end, segment, end_position)
        size = end_position - start
        return Read([FileSpan(segment.file, start, size)], size, Offset(end))

    @staticmethod
    def _before(damage: Corrupt, segment: Segment, offset: int, start: int | None, max_bytes: int, limit: int) -> Read:
        """What there still is of a segment; raises the damage when nothing is."""
        first, end, position = start or 0, offset, start or 0
        with suppress(Corrupt):
            for batch in glance_batches(segment.file, first, segment.size if start is not None else 0):
                if batch.last >= limit or (position > first and batch.position + batch.size > first + max_bytes):
                    break
                end, position = batch.last + 1, batch.position + batch.size
        if position == first:
            raise damage
        return Read([FileSpan(segment.file, first, position - first)], position - first, Offset(end))

    def _remember(self, segment: Segment) -> None:
        """One index block is held for each log, not one for each segment ever searched."""
        if self._searched is not segment:
            if self._searched is not None:
                self._searched.offsets.forget()
            self._searched = segment

    def _hint(self, offset: int, segment: Segment, position: int) -> None:
        if position == segment.size:
            # The next read begins in another segment, or in recent batches.
            return
        hints = self._hints
        hints[offset] = (segment, position)
        if len(hints) > _HINTS_MAX:
            del hints[next(iter(hints))]
