"""Below the recovery point indexes are trusted, so the recovery point waits for those of a segment just sealed."""

from __future__ import annotations

from penstock.model.ids import Millis
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
