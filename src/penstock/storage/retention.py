"""Which segments of a log have had their time. Looks only; the log deletes."""

from __future__ import annotations

from collections.abc import Callable

from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.settings import LogSettings


def expired_segments(
    segments: Segments, settings: LogSettings, *, now: int, log_start: int, log_end: int, committed: int
) -> list[Segment]:
    """The oldest segments that may go: those before the log's start, beyond the size limit or beyond the age limit.

    Only what is committed goes, oldest first, up to the first segment that stays. The active segment goes too when it
    has expired with content. A topic that only compacts loses nothing but what lies before its start.
    """
    count = _count(segments, log_end, committed, lambda index: 0 <= segments.end_of(index, -1) <= log_start)
    if settings.deletes:
        count = max(count, _count(segments, log_end, committed, _beyond_size(segments, settings, count)))
        count = max(count, _count(segments, log_end, committed, _beyond_age(segments, settings, now)))
    return [segments[index] for index in range(count)]


def _count(segments: Segments, log_end: int, committed: int, expired: Callable[[int], bool]) -> int:
    count = 0
    for index in range(len(segments)):
        is_empty_active = index == len(segments) - 1 and segments[index].size == 0
        if is_empty_active or segments.end_of(index, log_end) > committed or not expired(index):
            break
        count += 1
    return count


def _beyond_size(segments: Segments, settings: LogSettings, gone: int) -> Callable[[int], bool]:
    """A segment goes when the rest without it still has at least `retention_bytes`."""
    size = segments.size_bytes - sum(segments[index].size for index in range(gone))
    excess = size - settings.retention_bytes

    def expired(index: int) -> bool:
        nonlocal excess
        if index < gone:
            return True
        excess -= segments[index].size
        return excess >= 0

    return expired if settings.retention_bytes >= 0 else lambda _: False


def _beyond_age(segments: Segments, settings: LogSettings, now: int) -> Callable[[int], bool]:
    """By the newest timestamp inside; one from the future keeps its segment and all after it."""
    if settings.retention_ms < 0:
        return lambda _: False
    return lambda index: now - segments[index].largest_timestamp() > settings.retention_ms
