"""What goes when, and what rolls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.model.errors import CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE, RECORD_LIST_TOO_LARGE, Refused
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of, sized

NAME = TopicPartition("orders", 0)
D = "/data/orders-0"
HOUR = 3_600_000
SETTINGS = PlainLogSettings(segment_bytes=300, index_interval_bytes=150, retention_ms=-1)


def log_of(count: int = 10, *, files: MemoryFiles | None = None, commit: bool = True, **settings: object) -> Log:
    """Batches of 100 bytes, three in a segment; the record at offset o is from hour o."""
    log = Log.create(files or MemoryFiles(), D, NAME, Uuid(b"1" * 16), replace(SETTINGS, **settings), now=Millis(0))  # type: ignore[arg-type]
    for hour in range(count):
        append(log, sized(100, timestamp=hour * HOUR))
    if commit:
        log.commit_to(log.next)
    return log


def append(log: Log, data: bytearray, now: int = 0) -> None:
    log.append(data, header_of(data), epoch=Epoch(0), now=Millis(now))


def bases(log: Log) -> list[int]:
    return [segment.base for segment in log.segments]


def test_segments_whose_newest_record_is_too_old_go_oldest_first() -> None:
    log = log_of(retention_ms=2 * HOUR)
    assert bases(log) == [0, 3, 6, 9]
    assert log.retain(Millis(4 * HOUR)) == [], "two hours old is not too old yet"
    gone = log.retain(Millis(7 * HOUR))
    assert [segment.base for segment in gone] == [0]
    assert (log.log_start, log.local_start, bases(log)) == (3, 3, [3, 6, 9])


def test_a_quiet_topic_that_expired_empties_itself() -> None:
    files = MemoryFiles()
    log = log_of(retention_ms=2 * HOUR, files=files)
    assert len(log.retain(Millis(1_000 * HOUR))) == 4
    assert (log.log_start, log.next, bases(log), log.size_bytes) == (10, 10, [10], 0)
    assert log.retain(Millis(2_000 * HOUR)) == []
    append(log, sized(100))
    log.close()
    log = Log.open(files, D, NAME, Uuid(b"1" * 16), SETTINGS, now=Millis(0), clean=True)
    assert (log.log_start, log.next) == (10, 11)


def test_a_timestamp_from_the_future_keeps_its_segment_and_all_after_it() -> None:
    log = log_of(3, retention_ms=HOUR)
    append(log, sized(100, timestamp=10**15))
    append(log, sized(100, timestamp=0))
    log.commit_to(log.next)
    assert [segment.base for segment in log.retain(Millis(100 * HOUR))] == [0]


def test_size_retention_keeps_at_least_the_given_bytes() -> None:
    log = log_of(retention_bytes=650)
    assert log.size_bytes == 1_000
    assert [segment.base for segment in log.retain(Millis(0))] == [0]
    assert log.size_bytes == 700
    log = log_of(retention_bytes=0)
    assert len(log.retain(Millis(0))) == 4, "nothing is to be kept, so the active segment goes too"


def test_nothing_uncommitted_goes() -> None:
    log = log_of(retention_ms=0, commit=False)
    log.commit_to(Offset(5))
    assert [segment.base for segment in log.retain(Millis(1_000 * HOUR))] == [0]


def test_a_moved_start_lets_whole_segments_before_it_go_even_when_the_topic_only_compacts() -> None:
    log = log_of(retention_ms=0, retention_bytes=0, compacts=True, deletes=False)
    assert log.retain(Millis(1_000 * HOUR)) == []
    assert log.advance_start(Offset(5))
    assert not log.advance_start(Offset(4))
    assert [segment.base for segment in log.retain(Millis(0))] == [0]
    assert (log.log_start, bases(log)) == (5, [3, 6, 9])
    with pytest.raises(Refused) as refused:
        log.read(4, max_bytes=1, limit=10, at_least_one=True)
    assert refused.value.error is OFFSET_OUT_OF_RANGE
    with pytest.raises(Refused) as refused:
        log.advance_start(Offset(11))
    assert refused.value.error is OFFSET_OUT_OF_RANGE


def test_deleted_files_stay_for_a_while_under_another_name() -> None:
    files = MemoryFiles()
    log = log_of(files=files, retention_bytes=650, file_delete_delay_ms=1_000)
    span = log.read(0, max_bytes=300, limit=10, at_least_one=True).spans[0]
    log.retain(Millis(5_000))
    deleted = [name for name in files.listdir(D) if name.endswith(".deleted")]
    assert deleted == [f"{0:020d}.{kind}.deleted" for kind in ("index", "log", "timeindex")]
    assert log.purge(70) == 1, "the delay begins with the first look at a clock that measures, not at one that is set"
    assert log.purge(1_069) == 1
    assert log.purge(1_070) == 0
    assert not [name for name in files.listdir(D) if name.endswith(".deleted")]
    assert len(span.read()) == 300


def test_deleted_files_are_handed_out_once_for_somebody_else_to_remove() -> None:
    files = MemoryFiles()
    log = log_of(files=files, retention_bytes=650, file_delete_delay_ms=1_000)
    log.retain(Millis(5_000))
    deleted = [f"{D}/{name}" for name in files.listdir(D) if name.endswith(".deleted")]
    assert log.purgeable(0) == []
    assert log.has_doomed
    assert set(deleted) <= set(log.purgeable(1_000)), "and names of files that it may have had"
    assert not log.has_doomed
    assert log.purgeable(2_000) == []
    assert all(files.exists(path) for path in deleted)


def test_a_segment_rolls_by_record_time() -> None:
    log = log_of(0, segment_bytes=10_000, segment_ms=HOUR)
    append(log, sized(100, timestamp=5 * HOUR))
    append(log, sized(100, timestamp=6 * HOUR))
    assert bases(log) == [0]
    append(log, sized(100, timestamp=6 * HOUR + 1))
    assert bases(log) == [0, 2]
    append(log, sized(100, timestamp=0), now=10**9)
    assert bases(log) == [0, 2], "an old record does not roll"


def test_a_segment_without_timestamps_rolls_by_its_age() -> None:
    log = log_of(0, segment_bytes=10_000, segment_ms=HOUR)
    append(log, sized(100, timestamp=-1), now=0)
    append(log, sized(100, timestamp=-1), now=HOUR)
    assert bases(log) == [0]
    append(log, sized(100, timestamp=-1), now=HOUR + 1)
    assert bases(log) == [0, 2]


def test_a_segment_rolls_when_an_index_is_full() -> None:
    log = log_of(0, segment_bytes=10_000, segment_index_bytes=36, index_interval_bytes=10)
    for i in range(12):
        append(log, sized(100, timestamp=i))
    # The time index has room for three entries and is full with two; the first batch of a segment has none.
    assert bases(log) == [0, 3, 6, 9]


def test_a_segment_rolls_before_relative_offsets_overflow() -> None:
    log = log_of(1)
    far = 1 + (1 << 31)
    log.append_exact(batch(base=far), now=Millis(0))
    assert bases(log) == [0, far]
    empty = log_of(0)
    empty.append_exact(batch(base=far), now=Millis(0))
    assert bases(empty) == [far], "an empty segment makes way"


def test_jitter_rolls_segments_of_different_logs_apart() -> None:
    settings = replace(SETTINGS, segment_ms=1_000_000, segment_jitter_ms=900_000)
    files = MemoryFiles()
    waits = set()
    for partition in range(20):
        log = Log.create(files, f"/data/t-{partition}", NAME, Uuid(b"1" * 16), settings, now=Millis(0))
        append(log, sized(100, timestamp=0))
        waits.add(next(ms for ms in range(0, 1_000_001, 10_000) if log.segments[0].must_roll(1, 1, ms, ms, settings)))
    assert len(waits) > 10


def test_max_compaction_lag_bounds_how_long_a_segment_stays_open() -> None:
    log = log_of(0, segment_bytes=10_000, segment_ms=9 * HOUR, compacts=True, max_compaction_lag_ms=HOUR)
    append(log, sized(100, timestamp=0))
    append(log, sized(100, timestamp=HOUR + 1))
    assert bases(log) == [0, 1]
    append(log, sized(100, timestamp=2 * HOUR))
    append(log, sized(100, timestamp=3 * HOUR))
    assert bases(log) == [0, 1, 3]


def test_sealing_is_an_event() -> None:
    log = log_of(0)
    sealed: list[int] = []
    log.on_sealed = lambda segment: sealed.append(segment.base)
    for hour in range(7):
        append(log, sized(100, timestamp=hour))
    assert sealed == [0, 3]


def test_settings_are_live() -> None:
    log = log_of(2)
    log.settings = replace(SETTINGS, segment_bytes=1_000)
    for hour in range(6):
        append(log, sized(100, timestamp=hour))
    assert bases(log) == [0]


def test_a_batch_that_no_segment_can_hold_is_refused() -> None:
    log = log_of(1)
    with pytest.raises(Refused) as refused:
        append(log, sized(301))
    assert refused.value.error is RECORD_LIST_TOO_LARGE
    assert log.next == 1


@pytest.mark.parametrize("bad", [b"", batch(base=0), batch(base=5)[:-1], batch(base=5) + b"x" * 61, batch(base=5) * 2])
def test_a_follower_appends_whole_batches_in_order_or_nothing(bad: bytes) -> None:
    log = log_of(3)
    with pytest.raises(Refused) as refused:
        log.append_exact(bytes(bad), now=Millis(0))
    assert refused.value.error is CORRUPT_MESSAGE
    assert log.next == 3


def test_a_follower_can_verify_what_it_appends() -> None:
    log = log_of(3)
    data = batch(base=3)
    data[-1] ^= 1
    with pytest.raises(Refused):
        log.append_exact(data, now=Millis(0), verify=True)


def test_records_are_found_by_time() -> None:
    log = log_of(10)
    assert log.offset_for_time(0, 10) == (0, 0)
    assert log.offset_for_time(4 * HOUR, 10) == (4 * HOUR, 4)
    assert log.offset_for_time(4 * HOUR + 1, 10) == (5 * HOUR, 5)
    assert log.offset_for_time(9 * HOUR + 1, 10) is None
    assert log.offset_for_time(8 * HOUR, 8) is None
    assert log.max_timestamp() == (9 * HOUR, 9)
    log.advance_start(Offset(6))
    assert log.offset_for_time(0, 10) == (6 * HOUR, 6)
    append(log, batch(5, timestamp=20 * HOUR))
    assert log.offset_for_time(20 * HOUR + 2, 15) == (20 * HOUR + 2, 12)
    assert log.max_timestamp() == (20 * HOUR + 4, 14)
    assert log_of(0).max_timestamp() is None


def test_truncating_fully_begins_anew() -> None:
    log = log_of(10)
    log.truncate_fully(Offset(500))
    assert (log.log_start, log.next, log.committed, bases(log)) == (500, 500, 500, [500])
    append(log, sized(100))
    assert log.next == 501
    log.truncate(Offset(20))
    assert (log.log_start, log.next) == (20, 20)
