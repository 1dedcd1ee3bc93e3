"""The segments of a log in order of their base offsets. The last one is active: it alone grows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from penstock.storage.segment import Segment


class Segments:
    """A list with binary search. Empty only while a log is being opened."""

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.base)
        self._bases = [segment.base for segment in self._segments]
        # A plain attribute: every append looks at it.
        self.active: Segment = self._segments[-1] if self._segments else _NOTHING

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    def __contains__(self, segment: Segment) -> bool:
        index = bisect_left(self._bases, segment.base)
        return index < len(self._segments) and self._segments[index] is segment

    def add(self, segment: Segment) -> None:
        """Replaces the segment with the same base, if there is one."""
        index = bisect_left(self._bases, segment.base)
        if index < len(self._bases) and self._bases[index] == segment.base:
            self._segments[index] = segment
        else:
            self._bases.insert(index, segment.base)
            self._segments.insert(index, segment)
        self.active = self._segments[-1]

    def remove(self, segment: Segment) -> None:
        index = self._segments.index(segment)
        del self._segments[index], self._bases[index]
        self.active = self._segments[-1] if self._segments else _NOTHING

    def floor(self, offset: int) -> int:
        """Index of the segment that holds `offset`, or would; 0 when it lies before all."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def holding(self, offset: int) -> Segment:
        return self._segments[self.floor(offset)]

    def since(self, offset: int) -> list[Segment]:
        """The segment that holds `offset` and all after it."""
        return self._segments[self.floor(offset) :]

    def end_of(self, index: int, log_end: int) -> int:
        """The offset after segment `index`: where the next one begins, or the log's end."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else log_end

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)


_NOTHING = object.__new__(Segment)
