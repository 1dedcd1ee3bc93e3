"""A clean stop is believed by the next start, so all of it must survive a power cut right after."""

from __future__ import annotations

from penstock.testing.memory_files import MemoryFiles

from .test_log_basics import append, batch, header_of, new_log, reopen


def test_what_a_clean_close_leaves_survives_a_power_cut() -> None:
    files = MemoryFiles()
    files.makedirs("/data")
    files.sync_dir("/")
    log = new_log(files)
    append(log, batch(2, producer=(7, 0, 0), timestamp=5_000))
    log.flush()  # names are durable now; those of the end are still to come
    append(log, last := batch(1, producer=(7, 0, 2), timestamp=6_000))
    log.close()
    files.crash()
    log = reopen(files, clean=True, recovery_point=3)
    assert (log.next, log.segments[0].largest_timestamp()) == (3, 6_000)
    again = log.producers.check(header_of(last))
    assert again is not None, "the retry of an idempotent producer is known"
    assert again.base == 2
