"""Checkpoints speak of partitions by name, and a name may have had another topic: nothing of that one is believed."""

from __future__ import annotations

import errno
from collections.abc import Mapping

import pytest

from penstock.model.errors import INCONSISTENT_TOPIC_ID, Refused
from penstock.model.ids import Epoch, Millis, Offset, PartitionKey, TopicPartition, Uuid
from penstock.storage.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    OffsetCheckpoint,
)
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.storage.store import LogStore
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of
from .test_store import TWO, counting_uuids

SETTINGS = PlainLogSettings(segment_bytes=1_000, index_interval_bytes=100)
NOW = Millis(1_000)
HOME = "/disk1/logs"
NAME = TopicPartition("orders", 0)
OLD, NEW = PartitionKey(Uuid(b"o" * 16), 0), PartitionKey(Uuid(b"n" * 16), 0)


def opened(files: MemoryFiles, directories: tuple[str, ...] = (HOME,)) -> LogStore:
    store = LogStore(files, directories, settings_for=lambda _: SETTINGS, new_uuid=counting_uuids())
    store.open(cluster_id="c", node_id=1, now=NOW)
    return store


def fill(log: Log, count: int, word: bytes) -> None:
    for _ in range(count):
        data = batch(1, value=word * 10)
        log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    log.commit_to(log.next)


def content(log: Log) -> bytes:
    found, offset = b"", log.log_start
    while offset < log.written:
        read = log.read(offset, max_bytes=1 << 20, limit=log.written, at_least_one=True)
        found, offset = found + b"".join(span.read() for span in read.spans), read.end
    return found


def said(files: MemoryFiles, checkpoint: str, directory: str = HOME) -> Mapping[TopicPartition, int]:
    return OffsetCheckpoint(files, f"{directory}/{checkpoint}").read()


def written_before(files: MemoryFiles, checkpoint: str, offset: int, directory: str = HOME) -> None:
    """A checkpoint as an earlier release may have left it: of a topic of this name that was deleted since."""
    OffsetCheckpoint(files, f"{directory}/{checkpoint}").write({NAME: offset})


def test_a_deleted_topics_checkpoints_do_not_reach_the_next_one_of_its_name() -> None:
    files = MemoryFiles()
    store = opened(files)
    log = store.create(NAME, OLD.topic_id, SETTINGS, now=NOW)
    fill(log, 1_000, b"old")
    log.advance_start(Offset(900))
    log.flush()
    store.write_checkpoints()
    store.remove(OLD, now=NOW)
    again = store.create(NAME, NEW.topic_id, SETTINGS, now=NOW)
    fill(again, 100, b"new")
    expected = content(again)
    files.kill()

    found = opened(files).get(NEW)
    assert found is not None
    assert (found.log_start, found.next) == (0, 100)
    assert content(found) == expected


# -- what the files of a log contradict

RECORDS = 100


def with_entry(checkpoint: str, offset: int, *, written_ms: int, made_ms: int = 5_000, clean: bool = False) -> Log:
    """A log of 100 records in several segments, opened beside a checkpoint that has an entry of its name."""
    files = MemoryFiles()
    files.now = Millis(made_ms)
    store = opened(files)
    made = store.create(NAME, NEW.topic_id, SETTINGS, now=NOW)
    fill(made, RECORDS, b"new")
    if clean:
        if checkpoint == LOG_STARTS and 0 < offset <= RECORDS:
            # After a clean stop the epochs tell of the start too.
            made.commit_to(made.next)
            made.advance_start(Offset(offset))
        store.close(1)
    files.now = Millis(written_ms)
    OffsetCheckpoint(files, f"{HOME}/{checkpoint}").write({NAME: offset})
    files.kill()
    log = opened(files).get(NEW)
    assert log is not None
    assert (log.segments[0].base, log.next) == (0, RECORDS), "nothing is deleted, whatever a checkpoint says"
    return log


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("offset", "believed"), [(-1, 0), (0, 0), (50, 50), (100, 100), (101, 0), (900, 0)])
def test_a_start_behind_the_end_is_another_logs(offset: int, believed: int, clean: bool) -> None:
    log = with_entry(LOG_STARTS, offset, written_ms=6_000, clean=clean)
    assert log.log_start == believed


@pytest.mark.parametrize(("offset", "believed"), [(-1, 0), (0, 0), (50, 50), (100, 100), (101, 0), (900, 0)])
def test_a_high_watermark_behind_the_end_is_another_logs(offset: int, believed: int) -> None:
    log = with_entry(HIGH_WATERMARKS, offset, written_ms=6_000)
    assert (log.committed, log.log_start) == (believed, 0)


def test_a_high_watermark_before_the_start_is_the_start() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(store.create(NAME, NEW.topic_id, SETTINGS, now=NOW), RECORDS, b"new")
    written_before(files, LOG_STARTS, 30)
    written_before(files, HIGH_WATERMARKS, 20)
    files.kill()
    log = opened(files).get(NEW)
    assert log is not None
    assert (log.log_start, log.committed) == (30, 30)


@pytest.mark.parametrize("offset", [101, 900])
def test_a_recovery_point_behind_the_end_lets_the_whole_log_be_read(offset: int) -> None:
    log = with_entry(RECOVERY_POINTS, offset, written_ms=6_000)
    assert log.flushed == 0
    assert log.scanned_bytes >= log.size_bytes


def test_a_recovery_point_within_the_log_is_believed() -> None:
    log = with_entry(RECOVERY_POINTS, 50, written_ms=6_000)
    assert log.flushed == 50
    assert log.scanned_bytes < log.size_bytes


@pytest.mark.parametrize("offset", [-1, 101, 900])
def test_cleaning_begins_at_the_start_when_its_checkpoint_speaks_of_what_cannot_have_been_cleaned(offset: int) -> None:
    log = with_entry(CLEANER_OFFSETS, offset, written_ms=6_000)
    assert log.cleaned_to == 0


def test_a_cleaner_offset_in_the_active_segment_is_not_believed() -> None:
    base = with_entry(LOG_STARTS, 0, written_ms=6_000).segments[-1].base
    assert with_entry(CLEANER_OFFSETS, base, written_ms=6_000).cleaned_to == base
    assert with_entry(CLEANER_OFFSETS, base + 1, written_ms=6_000).cleaned_to == 0


@pytest.mark.parametrize("offset", [10, 50, 100, 900])
def test_what_was_written_before_a_log_was_made_is_not_about_it(offset: int) -> None:
    """By its offset alone 50 may be this log's: it is the age of the file that tells."""
    assert with_entry(LOG_STARTS, offset, written_ms=4_000).log_start == 0
    assert with_entry(HIGH_WATERMARKS, offset, written_ms=4_000).committed == 0
    assert with_entry(RECOVERY_POINTS, offset, written_ms=4_000).flushed == 0
    assert with_entry(CLEANER_OFFSETS, offset, written_ms=4_000).cleaned_to is None


def test_after_a_clean_stop_a_copy_without_its_times_is_believed() -> None:
    assert with_entry(LOG_STARTS, 50, written_ms=4_000, clean=True).log_start == 50
    assert with_entry(HIGH_WATERMARKS, 50, written_ms=4_000, clean=True).committed == 50


def test_what_is_not_believed_leaves_the_disk_before_anything_is_made() -> None:
    files = MemoryFiles()
    files.now = Millis(5_000)
    store = opened(files)
    fill(store.create(NAME, NEW.topic_id, SETTINGS, now=NOW), RECORDS, b"new")
    gone = TopicPartition("gone", 3)
    files.now = Millis(4_000)
    for checkpoint in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        OffsetCheckpoint(files, f"{HOME}/{checkpoint}").write({NAME: 50, gone: 7})
    files.kill()
    opened(files)
    assert said(files, LOG_STARTS) == said(files, CLEANER_OFFSETS) == {}
    assert said(files, RECOVERY_POINTS) == said(files, HIGH_WATERMARKS) == {NAME: 0}


def test_a_producers_sequence_outlives_a_start_that_is_not_believed() -> None:
    files = MemoryFiles()
    store = opened(files)
    log = store.create(NAME, NEW.topic_id, SETTINGS, now=NOW)
    for number in range(RECORDS):
        data = batch(1, value=b"v" * 50, producer=(7, 0, number))
        log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    for checkpoint in (RECOVERY_POINTS, LOG_STARTS):
        written_before(files, checkpoint, 900)
    files.kill()
    found = opened(files).get(NEW)
    assert found is not None
    (producer,) = found.producers.states()
    assert (producer.producer_id, producer.last_sequence) == (7, RECORDS - 1)
    assert found.epochs.entries() == log.epochs.entries()


# -- leaving


def test_entries_leave_all_four_checkpoints_before_the_directory_is_renamed() -> None:
    files = MemoryFiles()
    store = opened(files)
    log = store.create(NAME, OLD.topic_id, SETTINGS, now=NOW)
    fill(log, RECORDS, b"old")
    log.advance_start(Offset(20))
    log.cleaned_to = Offset(30)
    store.write_checkpoints()
    checkpoints = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS)
    assert all(NAME in said(files, checkpoint) for checkpoint in checkpoints)
    changes: list[tuple[str, str]] = []
    files.before = lambda what, path: changes.append((what, path))
    store.remove(OLD, now=NOW)
    renamed = changes.index(("rename", f"{HOME}/orders-0"))
    for checkpoint in checkpoints:
        assert changes.index(("rename", f"{HOME}/{checkpoint}.tmp")) < renamed
    assert ("sync_dir", HOME) in changes[:renamed]
    assert not any(NAME in said(files, checkpoint) for checkpoint in checkpoints)


def test_a_log_that_no_checkpoint_speaks_of_leaves_without_a_write() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(store.create(NAME, OLD.topic_id, SETTINGS, now=NOW), RECORDS, b"old")
    syncs = files.syncs
    store.remove(OLD, now=NOW)
    assert files.syncs == syncs
    assert not files.exists(f"{HOME}/orders-0")


def test_a_log_that_is_on_its_way_out_keeps_its_name() -> None:
    store = opened(MemoryFiles())
    store.create(NAME, OLD.topic_id, SETTINGS, now=NOW)
    store.let_go(OLD, now=NOW)
    assert store.get(OLD) is None
    assert NAME in store.departures
    with pytest.raises(Refused) as refused:
        store.create(NAME, NEW.topic_id, SETTINGS, now=NOW)
    assert refused.value.error is INCONSISTENT_TOPIC_ID
    store.settle()
    assert NAME not in store.departures
    store.create(NAME, NEW.topic_id, SETTINGS, now=NOW)


def test_a_directory_that_fails_keeps_what_was_leaving_it() -> None:
    files = MemoryFiles()
    store = opened(files, TWO)
    log = store.create(NAME, OLD.topic_id, SETTINGS, now=NOW)
    fill(log, 5, b"old")
    store.write_checkpoints()
    store.let_go(OLD, now=NOW)
    files.fail("/disk1", errno.EIO)
    store.settle()
    assert [directory.online for directory in store.directories] == [False, True]
    assert not store.departures
    assert files.exists(f"{HOME}/orders-0")


def test_of_two_copies_the_one_that_serves_takes_over_what_was_said_of_the_other() -> None:
    """A crash between the take-over of a move and the checkpoints of the new directory."""
    files = MemoryFiles()
    store = opened(files, TWO)
    old = store.create(NAME, OLD.topic_id, SETTINGS, store.directories[0].id, now=NOW)
    fill(old, RECORDS, b"old")
    old.advance_start(Offset(40))
    old.cleaned_to = Offset(40)
    store.write_checkpoints()
    copy = store.create(NAME, OLD.topic_id, SETTINGS, store.directories[1].id, now=NOW, future=True)
    fill(copy, RECORDS + 1, b"old")
    store.succeed(OLD)
    files.kill()
    store = opened(files, TWO)
    (log,) = store.logs.values()
    assert (log.directory, log.log_start, log.committed, log.cleaned_to) == ("/disk2/logs/orders-0", 40, RECORDS, 40)
    assert said(files, LOG_STARTS, TWO[0]) == {}
    assert said(files, LOG_STARTS, TWO[1]) == {NAME: 40}
    files.kill()
    (log,) = opened(files, TWO).logs.values()
    assert (log.log_start, log.committed, log.cleaned_to) == (40, RECORDS, 40)
