"""Compaction seen from the log: whether a pass is worth it, what it is told, and how its result comes in.

The pass itself (`compaction`) runs elsewhere and only adds `.cleaned` files. What replaces what is decided by renames
whose order lets a crash at any point end in the old segments or in the new ones, never in a mixture: all files of the
new segment become `.swap`, then the old ones `.deleted`, then `.swap` falls away. `recovery.finish_interrupted` is the
other half.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.ports import Files
from penstock.storage.clean_job import CleanedSegment, CleanJob, LastOfProducer, SegmentFacts
from penstock.storage.names import CLEANED, SEGMENT_SUFFIXES, SWAP, TRANSACTION_INDEX, segment_file
from penstock.storage.producers import Producers
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.settings import LogSettings


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """A pass that is due. `job` goes to the helper process; `urgent` means that max.compaction.lag.ms has passed."""

    job: CleanJob
    segments: list[Segment]
    clean_bytes: int
    dirty_bytes: int
    urgent: bool
    cuts: int
    """How often the log had been cut when the pass was planned."""

    @property
    def dirty_ratio(self) -> float:
        """By this the dirtiest log is chosen."""
        return self.dirty_bytes / max(1, self.clean_bytes + self.dirty_bytes)


def plan_cleaning(
    segments: Segments,
    settings: LogSettings,
    producers: Producers,
    *,
    now: int,
    first_dirty: int | None,
    log_start: int,
    log_end: int,
    last_stable: int,
    dedupe_buffer_bytes: int,
    cuts: int,
) -> CleanPlan | None:
    """A plan when enough is dirty, or something has been dirty for too long; else None."""
    if not settings.compacts:
        return None
    dirty_from = log_start if first_dirty is None or not log_start <= first_dirty <= log_end else first_dirty
    clean_end = _clean_end(segments, settings, now, dirty_from, last_stable)
    sealed = [segment for segment in segments if segment.base < clean_end]
    dirty = [segment for index, segment in enumerate(sealed) if segments.end_of(index, log_end) > dirty_from]
    plan = CleanPlan(
        job=CleanJob(
            segments=[SegmentFacts(segment.base, segment.size) for segment in sealed],
            first_dirty=dirty_from,
            clean_end=clean_end,
            now_ms=now,
            delete_retention_ms=settings.delete_retention_ms,
            segment_bytes=settings.segment_bytes,
            segment_index_bytes=settings.segment_index_bytes,
            index_interval_bytes=settings.index_interval_bytes,
            dedupe_buffer_bytes=dedupe_buffer_bytes,
            producers=[LastOfProducer(p.producer_id, p.last_offset, p.epoch) for p in producers.states()],
            aborted=[each for segment in segments for each in segment.aborted.entries() if each.first < clean_end],
        ),
        segments=sealed,
        clean_bytes=sum(segment.size for segment in sealed) - sum(segment.size for segment in dirty),
        dirty_bytes=sum(segment.size for segment in dirty),
        urgent=_waited_too_long(dirty, settings, now),
        cuts=cuts,
    )
    if not plan.dirty_bytes or not (plan.urgent or plan.dirty_ratio > settings.min_cleanable_dirty_ratio):
        return None
    return plan


def _clean_end(segments: Segments, settings: LogSettings, now: int, dirty_from: int, last_stable: int) -> int:
    """Cleaning stops before unstable records, before the active segment and before what is too young, by segments."""
    end = min(last_stable, segments.active.base)
    if settings.min_compaction_lag_ms > 0:
        for segment in segments.since(dirty_from):
            if segment.base < end and segment.largest_timestamp() > now - settings.min_compaction_lag_ms:
                end = segment.base
                break
    return segments.holding(end).base


def _waited_too_long(dirty: list[Segment], settings: LogSettings, now: int) -> bool:
    oldest = min((segment.first_timestamp for segment in dirty if segment.first_timestamp > 0), default=now)
    return now - oldest > max(0, settings.max_compaction_lag_ms)


def overtaken(plan: CleanPlan, segments: Segments, cuts: int) -> bool:
    """Whether the log has changed under the pass: a segment went, or the end was cut off.

    Then it may well have missed a file or found half a batch, and nothing is wrong with the disk.
    """
    return cuts != plan.cuts or any(segment not in segments for segment in plan.segments)


def still_valid(plan: CleanPlan, segments: Segments, cuts: int, replaced: list[CleanedSegment]) -> bool:
    """Whether the log still has the segments that the pass read, unchanged. A truncation or deletion spoils it.

    A segment that was cut and written again may have the size that it had.
    """
    if cuts != plan.cuts:
        return False
    planned = {
        segment.base: (segment, facts.size) for segment, facts in zip(plan.segments, plan.job.segments, strict=True)
    }
    for cleaned in replaced:
        for base in cleaned.replaces:
            segment, size = planned[base]
            if segment not in segments or segment.size != size or segment is segments.active:
                return False
    return True


def bring_to_swap(files: Files, directory: str, cleaned: CleanedSegment, now: int) -> Segment:
    """Renames a cleaned segment's files; from here on a crash carries the replacement through."""
    has_aborted = files.exists(f"{directory}/{segment_file(cleaned.base, TRANSACTION_INDEX)}{CLEANED}")
    segment = Segment(
        files, directory, cleaned.base, size=cleaned.size, created_ms=now, has_aborted=has_aborted, mark=CLEANED
    )
    segment.move(mark=SWAP)
    return segment


def discard(files: Files, directory: str, replaced: list[CleanedSegment]) -> None:
    """Removes what a pass made that came too late."""
    for cleaned in replaced:
        for suffix in SEGMENT_SUFFIXES:
            path = f"{directory}/{segment_file(cleaned.base, suffix)}{CLEANED}"
            if files.exists(path):
                files.remove(path)
