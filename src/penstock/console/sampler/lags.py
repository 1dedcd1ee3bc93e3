"""How far groups are behind, in records and in seconds. Pure but for its own memory of ends.

A position is as many seconds behind as have passed since the end of the log stood there. The ends of what groups read
are remembered for a quarter of an hour; of a position older than that no number is told.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Final

from penstock.model.ids import TopicPartition

LOOKS_KEPT: Final = 90
PARTITIONS_MAX: Final = 20_000
"""Of so many partitions ends are remembered: 90 looks of 8 bytes each."""


class EndsSeen:
    """Where logs ended at each of the last looks. One thread writes; readers see a look late at worst."""

    def __init__(self) -> None:
        self._times: array[int] = array("q", [0]) * LOOKS_KEPT
        self._ends: dict[TopicPartition, array[int]] = {}
        self._looks = 0

    def put(self, at_ms: int, ends: Mapping[TopicPartition, int], wanted: Iterable[TopicPartition]) -> None:
        """Remembers the ends of the partitions that somebody reads, and forgets the others."""
        slot = self._looks % LOOKS_KEPT
        kept: dict[TopicPartition, array[int]] = {}
        for item in wanted:
            if len(kept) >= PARTITIONS_MAX:
                break
            known = self._ends.get(item)
            kept[item] = known if known is not None else array("q", [-1]) * LOOKS_KEPT
            kept[item][slot] = ends.get(item, -1)
        self._ends = kept
        self._times[slot] = at_ms
        self._looks += 1

    def behind_s(self, item: TopicPartition, committed: int, end: int, now_ms: int) -> float | None:
        """Since when the record at a position waits; None when that is longer ago than is remembered."""
        if committed >= end:
            return 0.0
        seen = self._ends.get(item)
        if seen is None:
            return None
        earlier: tuple[int, int] | None = None
        for look in range(max(self._looks - LOOKS_KEPT, 0), self._looks):
            at_ms, stood = self._times[look % LOOKS_KEPT], seen[look % LOOKS_KEPT]
            if stood < 0:
                continue
            if stood > committed:
                if earlier is None:
                    return None  # it waited already when the first look was taken
                # The record came between two looks; records are taken to have come evenly.
                before_ms, before = earlier
                share = (committed - before) / (stood - before)
                return max(now_ms - (before_ms + share * (at_ms - before_ms)), 0.0) / 1_000
            earlier = (at_ms, stood)
        # It came after the last look.
        return max(now_ms - earlier[0], 0) / 1_000 if earlier else None


def lag_of(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Records that each partition's reader has before it; never less than none."""
    return {item: max(ends[item] - committed, 0) for item, committed in positions.items() if item in ends}


def trend(points: Iterable[float | None]) -> str:
    """Whether a lag grows: the mean of the last third beside that of the first."""
    known = [point for point in points if point is not None]
    if len(known) < 6:
        return "unknown"
    third = len(known) // 3
    early, late = sum(known[:third]) / third, sum(known[-third:]) / third
    least = max(1.0, 0.1 * max(early, late))
    if late - early > least:
        return "growing"
    return "falling" if early - late > least else "steady"
