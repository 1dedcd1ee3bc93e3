"""Below the recovery point indexes are trusted, so the recovery point waits for those of a segment just sealed."""

from __future__ import annotations

from penstock.model.ids import Millis, Offset
from penstock.storage.log import Log
from penstock.testing.memory_files import MemoryFiles

from .test_log_basics import NOW, append, new_log, reopen, sized


def rolled(files: MemoryFiles, batches: int = 4) -> Log:
    """A log whose first three batches were flushed one by one; the fourth began a new segment and was not."""
    files.makedirs("/data")
    files.sync_dir("/")
    log = new_log(files)
    for number in range(batches):
        append(log, sized(3_000, timestamp=1_000 * (number + 1)))
        if number < 3:
            log.flush()
    assert [segment.base for segment in log.segments] == [0, 3][: batches - 2]
    return log


def largest_timestamp_after_a_crash(files: MemoryFiles, recovery_point: int) -> int:
    files.crash()
    return reopen(files, clean=False, recovery_point=recovery_point).segments[0].largest_timestamp()


def test_a_crash_before_the_next_flush_recovers_the_sealed_segment_too() -> None:
    files = MemoryFiles()
    log = rolled(files)
    assert (log.flushed, log.recovery_checkpoint) == (3, 0)
    assert largest_timestamp_after_a_crash(files, log.recovery_checkpoint) == 3_000


def test_the_next_flush_makes_the_indexes_of_a_sealed_segment_durable() -> None:
    files = MemoryFiles()
    log = rolled(files)
    log.flush()
    assert (log.flushed, log.recovery_checkpoint) == (4, 3)
    assert largest_timestamp_after_a_crash(files, log.recovery_checkpoint) == 3_000


def test_a_checkpoint_written_before_the_roll_still_leads_to_the_sealed_segment() -> None:
    files = MemoryFiles()
    log = rolled(files, batches=3)
    written = log.recovery_checkpoint
    append(log, sized(3_000, timestamp=9_000))
    assert len(log.segments) == 2
    assert largest_timestamp_after_a_crash(files, written) == 3_000


def test_a_segment_sealed_while_a_sync_runs_waits_for_the_next() -> None:
    files = MemoryFiles()
    log = rolled(files)
    syncs, end = log.files_to_sync(), log.written
    append(log, sized(8_000, timestamp=9_000))
    for sync in syncs:
        sync.sync()
    log.mark_flushed(end)
    assert (log.flushed, log.recovery_checkpoint) == (4, 3)


def test_a_sealed_segment_that_was_deleted_is_not_waited_for_for_ever() -> None:
    log = rolled(MemoryFiles())
    log.commit_to(log.next)
    log.advance_start(log.next)
    log.retain(Millis(NOW + 1))
    log.flush()
    assert log.recovery_checkpoint == log.segments[-1].base


def torn_in_the_middle(files: MemoryFiles) -> None:
    """A power cut that leaves all names and the last segment, and takes a batch from the one before it."""
    log = rolled(files, batches=3)
    log.truncate(Offset(2))
    log.flush()
    for timestamp in (7_000, 8_000):
        append(log, sized(3_000, timestamp=timestamp))
    assert [segment.base for segment in log.segments] == [0, 3]

    def keep(path: str, unsynced: int) -> int:
        return 0 if path.endswith(f"{0:020}.log") else unsynced

    files.crash(keep, keep_names=True)


def test_what_follows_a_hole_goes_where_offsets_have_none() -> None:
    """Or the retry of what was in the hole would come after what its producer sent next."""
    files = MemoryFiles()
    torn_in_the_middle(files)
    log = reopen(files, clean=False, gapless=True)
    assert ([segment.base for segment in log.segments], log.next) == ([0], 2)


def test_a_hole_is_kept_where_compaction_may_have_made_it() -> None:
    files = MemoryFiles()
    torn_in_the_middle(files)
    log = reopen(files, clean=False)
    assert ([segment.base for segment in log.segments], log.next) == ([0, 3], 4)
