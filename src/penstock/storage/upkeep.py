"""What a log does besides serving: rolling, retention, purging, and taking in the result of a compaction."""

from __future__ import annotations

from penstock.model.errors import OFFSET_OUT_OF_RANGE, Refused
from penstock.model.ids import Millis, Offset
from penstock.storage.clean_job import CleanResult
from penstock.storage.cleaning import CleanPlan, bring_to_swap, discard, plan_cleaning, still_valid
from penstock.storage.log_core import LogCore, guarded
from penstock.storage.retention import expired_segments
from penstock.storage.segment import Segment


class LogUpkeep(LogCore):
    """Driven by timers; nothing here syncs."""

    __slots__ = ()

    def advance_start(self, to: Offset) -> bool:
        """Nothing before `to` is promised any more. OFFSET_OUT_OF_RANGE beyond what is committed."""
        if self.failure is not None:
            raise self.refusal()
        if to > self.committed:
            raise Refused(OFFSET_OUT_OF_RANGE, f"cannot start {self.name} at {to}: committed is {self.committed}")
        if to <= self.log_start:
            return False
        self.log_start = to
        self.epochs.truncate_from_start(to)
        self._snapshots.start_advanced(to)
        return True

    @guarded
    def roll_if_due(self, now: Millis) -> bool:
        """Rolls an active segment that is older than `segment.ms`, without waiting for the next batch."""
        active = self._segments.active
        if not active.size or not active.is_old(now, now, self.settings):
            return False
        self._roll(self.next, now)
        return True

    @guarded
    def roll(self, now: Millis) -> None:
        """Begins a new segment if the active one has anything in it."""
        if self._segments.active.size:
            self._roll(self.next, now)

    @guarded
    def retain(self, now: Millis) -> list[Segment]:
        """Deletes what retention lets go and moves the log's start; returns the segments that went."""
        gone = expired_segments(
            self._segments,
            self.settings,
            now=now,
            log_start=self.log_start,
            log_end=self.next,
            committed=self.committed,
        )
        if not gone:
            return []
        if len(gone) == len(self._segments):
            self._roll(self.next, now)
        for segment in gone:
            self._segments.remove(segment)
        self._doom(gone, now)
        self.advance_start(Offset(self._segments[0].base))
        return gone

    def purgeable(self, now: Millis) -> list[str]:
        """Deleted files whose delay is over, handed out once: remove them off the loop, for a gigabyte takes 0.1 s."""
        waiting: list[tuple[int | None, list[str]]] = []
        due_now: list[str] = []
        for due, paths in self._doomed:
            if due is None:
                due = now + self.settings.file_delete_delay_ms
            if due <= now:
                due_now += paths
            else:
                waiting.append((due, paths))
        self._doomed = waiting
        return due_now

    @guarded
    def purge(self, now: Millis) -> int:
        """`purgeable`, removed here and now; returns how many segments are still waiting."""
        for path in self.purgeable(now):
            try:
                self.files.remove(path)
            except FileNotFoundError:
                continue
        return len(self._doomed)

    # -- moving to another directory

    @guarded
    def skip_to(self, offset: Offset, *, now: Millis) -> None:
        """Goes on at `offset`: the log that this one copies has nothing left between its last batch and its end."""
        if offset > self.next:
            self._roll(offset, now)
            self.messages_unflushed += offset - self.next
            self.next = self.written = offset

    @guarded
    def take_over(self, source: LogCore) -> None:
        """Becomes the successor of a log whose batches it all holds: ends, epochs and producers are the source's.

        What batches alone do not tell comes over too: an epoch that wrote nothing, and a producer whose batches
        retention took. The source must not be used afterwards.
        """
        assert self.next == source.next, "a successor holds everything"
        self.settings, self.on_sealed, self.on_doomed = source.settings, source.on_sealed, source.on_doomed
        if self.on_doomed is not None and self._doomed:
            self.on_doomed()
        self.epochs.clear()
        for entry in source.epochs.entries():
            self.epochs.assign(entry.epoch, entry.start)
        self.producers = source.producers
        self.cleaned_to = source.cleaned_to
        self.commit_to(source.committed)
        self.advance_start(source.log_start)
        self._snapshots.take(self.producers)

    # -- compaction

    @guarded
    def cleanable(self, now: Millis, *, dedupe_buffer_bytes: int = 128 << 20) -> CleanPlan | None:
        """What a cleaning pass would do now, or None when none is due."""
        return plan_cleaning(
            self._segments,
            self.settings,
            self.producers,
            now=now,
            first_dirty=self.cleaned_to,
            log_start=self.log_start,
            log_end=self.next,
            last_stable=self.last_stable,
            dedupe_buffer_bytes=dedupe_buffer_bytes,
        )

    @guarded
    def swap(self, plan: CleanPlan, result: CleanResult, *, now: Millis) -> bool:
        """Puts the cleaned segments in the place of those they replace.

        False when the log was cut meanwhile: then the result is thrown away, and cleaning begins again where it was.
        """
        if not still_valid(plan, self._segments, result.segments):
            discard(self.files, self.directory, result.segments)
            return False
        by_base = {segment.base: segment for segment in plan.segments}
        for cleaned in result.segments:
            segment = bring_to_swap(self.files, self.directory, cleaned, now)
            replaced = [by_base[base] for base in cleaned.replaces]
            for old in replaced:
                self._segments.remove(old)
            self._segments.add(segment)
            self._doom(replaced, now, keep_snapshot_of=segment.base)
            segment.move(mark="")
        self._older.forget()
        return True
