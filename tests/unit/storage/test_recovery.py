"""What a start finds after every kind of stop and damage."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import Corrupt, Refused, StorageFailed
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage import batch_walk
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of, sized

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"\x07" * 16)
D = "/data/orders-0"
NOW = Millis(10_000)
SETTINGS = PlainLogSettings(segment_bytes=1_000, index_interval_bytes=150)
# Batches of 100 bytes: ten in a segment, so segments begin at 0, 10, 20 and 30.
BATCH_BYTES = 100


def filled(files: MemoryFiles, count: int = 35) -> Log:
    log = Log.create(files, D, NAME, TOPIC_ID, SETTINGS, now=NOW)
    for i in range(count):
        append(log, sized(BATCH_BYTES, timestamp=1_000 + i))
    return log


def append(log: Log, data: bytearray) -> None:
    log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    log.commit_to(log.next)


def reopen(files: MemoryFiles, *, clean: bool = False, recovery_point: int = 0, log_start: int = 0) -> Log:
    files.kill()
    return Log.open(
        files, D, NAME, TOPIC_ID, SETTINGS, now=NOW, clean=clean, recovery_point=recovery_point, log_start=log_start
    )


def flip(files: MemoryFiles, name: str, position: int) -> None:
    file = files.open(f"{D}/{name}")
    byte = file.pread(1, position)
    file.pwritev((bytes([byte[0] ^ 0x10]),), position)


def bases(log: Log) -> list[int]:
    return [segment.base for segment in log.segments]


def readable(log: Log) -> list[int]:
    offset, seen = log.log_start, []
    while offset < log.written:
        read = log.read(offset, max_bytes=250, limit=log.written, at_least_one=True)
        seen += [header.base_offset for _, header in scan_batches(read.spans[0].read())]
        offset = read.end
    return seen


@pytest.mark.parametrize("cut", [1, 11, 12, 20, 60, 99])
def test_a_torn_tail_is_cut_at_the_last_whole_batch(cut: int) -> None:
    files = MemoryFiles()
    filled(files)
    file = files.open(f"{D}/00000000000000000030.log")
    file.truncate(4 * BATCH_BYTES + cut)
    log = reopen(files, recovery_point=30)
    assert (log.next, log.cut_bytes, log.segments[-1].size) == (34, cut, 400)
    append(log, sized(BATCH_BYTES))
    assert readable(log) == list(range(35))


@pytest.mark.parametrize("where", [0, 8, 11, 16, 18, 22, 25, 57, 70, 99])
def test_a_flipped_bit_above_the_recovery_point_cuts_the_log_there(where: int) -> None:
    files = MemoryFiles()
    filled(files)
    flip(files, "00000000000000000020.log", 5 * BATCH_BYTES + where)
    log = reopen(files, recovery_point=20)
    assert log.next == 25
    assert bases(log) == [0, 10, 20]
    assert log.cut_bytes == 1_000
    assert readable(log) == list(range(25))
    assert "00000000000000000030.log" not in files.listdir(D)


def test_a_flipped_bit_below_the_recovery_point_is_served_as_it_is() -> None:
    files = MemoryFiles()
    filled(files)
    flip(files, "00000000000000000000.log", 5 * BATCH_BYTES + 80)
    log = reopen(files, recovery_point=20)
    assert (log.next, log.scanned_bytes) == (35, 1_500)
    assert readable(log) == list(range(35))


def test_a_header_that_makes_no_sense_below_the_recovery_point_is_named_when_it_is_read() -> None:
    files = MemoryFiles()
    filled(files)
    file = files.open(f"{D}/00000000000000000000.log")
    file.pwritev((b"\xff\xff\xff\xff",), 5 * BATCH_BYTES + 8)
    log = reopen(files, recovery_point=20)
    with pytest.raises(Corrupt, match=r"00000000000000000000\.log at byte 500"):
        log.read(5, max_bytes=10, limit=35, at_least_one=True)
    log.read(12, max_bytes=10, limit=35, at_least_one=True)


def test_a_batch_that_goes_back_in_offsets_ends_the_log() -> None:
    files = MemoryFiles()
    filled(files, 3)
    file = files.open(f"{D}/00000000000000000000.log")
    file.pwritev((b"\0" * 8,), 2 * BATCH_BYTES)
    assert reopen(files).next == 2


def test_a_batch_larger_than_a_chunk_is_verified_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_walk, "CHUNK_BYTES", 1_024)
    files = MemoryFiles()
    log = Log.create(files, D, NAME, TOPIC_ID, replace(SETTINGS, segment_bytes=100_000), now=NOW)
    for size in (500, 5_000, 1_024, 1_025, 9_000):
        append(log, sized(size))
    assert reopen(files).next == 5
    flip(files, "00000000000000000000.log", 500 + 4_000)
    assert reopen(files).next == 1


def test_zeros_behind_the_log_as_a_preallocated_file_has_them_are_cut() -> None:
    files = MemoryFiles()
    log = Log.create(files, D, NAME, TOPIC_ID, replace(SETTINGS, preallocate=True), now=NOW)
    append(log, sized(BATCH_BYTES))
    append(log, sized(950))
    assert files.size(f"{D}/00000000000000000000.log") == BATCH_BYTES
    assert files.size(f"{D}/00000000000000000001.log") == 1_000
    log = reopen(files)
    assert (log.next, files.size(f"{D}/00000000000000000001.log")) == (2, 950)


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_a_missing_index_is_made_again(clean: bool, suffix: str) -> None:
    files = MemoryFiles()
    filled(files).close()
    paths = [f"{D}/{base:020d}.{suffix}" for base in (0, 30)]
    before = [files.read(path) for path in paths]
    assert all(before)
    for path in paths:
        files.remove(path)
    log = reopen(files, clean=clean, recovery_point=30)
    assert [files.read(path) for path in paths] == before
    assert readable(log) == list(range(35))


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("garbage", [b"\0" * 80_000, b"x", b"\x7f" * 800, b"\0\0\0\x05\0\0\0\x33"])
def test_an_index_that_cannot_be_right_is_made_again(clean: bool, garbage: bytes) -> None:
    files = MemoryFiles()
    filled(files).close()
    path = f"{D}/00000000000000000030.index"
    before = files.read(path)
    files.write_atomic(path, garbage)
    log = reopen(files, clean=clean, recovery_point=30)
    assert log.next == 35
    assert readable(log) == list(range(35))
    assert [log.read(o, max_bytes=1, limit=35, at_least_one=True).size for o in range(35)] == [BATCH_BYTES] * 35
    log.close()
    assert files.read(path) == before


@pytest.mark.parametrize("garbage", [b"\0\0\0\x05\0\0\0\x33" * 3, b"\0\0\0\x02\0\0\x01\xf4\0\0\0\x04\0\0\x03\x20"])
def test_a_sealed_index_that_points_at_no_batch_is_found_out_by_the_first_search(garbage: bytes) -> None:
    files = MemoryFiles()
    filled(files).close()
    files.write_atomic(f"{D}/00000000000000000010.index", garbage)
    log = reopen(files, clean=True)
    assert [scan_batches(log.read(o, max_bytes=1, limit=35, at_least_one=True).spans[0].read())[0][1].base_offset
            for o in range(10, 20)] == list(range(10, 20))  # fmt: skip


def test_a_preallocated_time_index_is_made_again() -> None:
    files = MemoryFiles()
    filled(files).close()
    path = f"{D}/00000000000000000030.timeindex"
    before = files.read(path)
    files.write_atomic(path, before + bytes(12_000))
    log = reopen(files, clean=True)
    assert log.offset_for_time(1_034, 35) == (1_034, 34)
    log.close()
    assert files.read(path) == before


def test_files_that_are_no_part_of_the_log_are_left_alone_and_orphans_go() -> None:
    files = MemoryFiles()
    filled(files).close()
    files.write_atomic(f"{D}/notes.txt", b"mine")
    files.write_atomic(f"{D}/00000000000000000099.index", b"")
    files.write_atomic(f"{D}/00000000000000000000.log.deleted", b"")
    files.write_atomic(f"{D}/00000000000000000010.snapshot.deleted", b"")
    files.write_atomic(f"{D}/00000000000000000010.log.cleaned", b"")
    log = reopen(files, clean=True)
    names = files.listdir(D)
    assert "notes.txt" in names
    assert not [name for name in names if name.endswith((".deleted", ".cleaned")) or name.startswith(f"{99:020d}")]
    assert readable(log) == list(range(35))


def test_a_swap_that_a_stop_interrupted_is_finished() -> None:
    files = MemoryFiles()
    filled(files).close()
    # Segment 0 replaces segments 0 and 10: it holds offsets 3 and 15 only.
    kept = bytearray()
    for base in (3, 15):
        kept += sized(BATCH_BYTES, base=base)
    files.write_atomic(f"{D}/00000000000000000000.log.swap", bytes(kept))
    files.write_atomic(f"{D}/00000000000000000000.index.swap", b"")
    files.write_atomic(f"{D}/00000000000000000000.timeindex.swap", b"")
    log = reopen(files, clean=True)
    assert bases(log) == [0, 20, 30]
    assert readable(log) == [3, 15, *range(20, 35)]
    assert log.read(5, max_bytes=1, limit=35, at_least_one=True).end == 16


def test_a_swap_that_was_not_decided_is_undone() -> None:
    files = MemoryFiles()
    filled(files).close()
    files.write_atomic(f"{D}/00000000000000000010.log.swap", b"")
    files.write_atomic(f"{D}/00000000000000000000.log.cleaned", b"")
    log = reopen(files, clean=True)
    assert readable(log) == list(range(35))
    assert not [name for name in files.listdir(D) if name.endswith((".swap", ".cleaned"))]


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_behind_the_end_is_not_believed_and_deletes_nothing(clean: bool) -> None:
    files = MemoryFiles()
    filled(files).close()
    log = reopen(files, clean=clean, log_start=100)
    assert (log.log_start, log.next, bases(log)) == (0, 35, [0, 10, 20, 30])
    append(log, sized(BATCH_BYTES))
    assert readable(log) == list(range(36))


def test_what_was_trimmed_shows_again_when_a_power_cut_takes_the_end_behind_the_start() -> None:
    files = MemoryFiles()
    files.makedirs("/data")
    files.sync_dir("/")
    log = filled(files, 5)
    log.flush()
    append(log, sized(BATCH_BYTES))
    log.settings = replace(SETTINGS, retention_ms=1)
    assert log.retain(Millis(NOW + 60_000))
    assert (log.log_start, log.next) == (6, 6)
    files.crash()
    log = reopen(files, recovery_point=5, log_start=6)
    assert (log.log_start, log.next) == (0, 5)


def test_a_start_in_a_gap_at_the_end_is_forgotten_with_the_gap_and_costs_no_scan() -> None:
    files = MemoryFiles()
    log = filled(files, 8)
    log.append_exact(batch(1, base=14), now=NOW)
    log.truncate(Offset(12))
    log.commit_to(log.next)
    log.advance_start(Offset(11))
    assert (log.log_start, log.next) == (11, 12)
    log.close()
    log = reopen(files, clean=True, log_start=11)
    assert (log.log_start, log.next, log.scanned_bytes) == (0, 8, 0)


def test_what_recovery_cut_stays_cut_through_a_second_power_cut() -> None:
    """Back below a recovery point that has passed it, it would be served: nobody looks there again."""
    files = MemoryFiles()
    files.makedirs("/data")
    files.sync_dir("/")
    log = filled(files, 9)
    log.flush()
    append(log, sized(BATCH_BYTES))
    files.crash(lambda _path, unsynced: unsynced // 2, keep_names=True)
    log = reopen(files, recovery_point=9)
    assert (log.next, log.cut_bytes) == (9, 50)
    log.roll(NOW)
    append(log, sized(BATCH_BYTES))
    files.crash(keep_names=True)
    log = reopen(files, recovery_point=9)
    assert [segment.size for segment in log.segments] == [900, 0]
    assert readable(log) == list(range(9))


def test_an_empty_directory_begins_at_the_promised_start() -> None:
    files = MemoryFiles()
    files.makedirs(D)
    log = reopen(files, log_start=7)
    assert (log.log_start, log.next) == (7, 7)


def test_a_torn_tail_after_a_claimed_clean_stop_is_recovered_all_the_same() -> None:
    files = MemoryFiles()
    filled(files).close()
    files.open(f"{D}/00000000000000000030.log").truncate(420)
    log = reopen(files, clean=True, recovery_point=35)
    assert log.next == 34


def test_the_recovery_point_only_moves_with_a_flush() -> None:
    files = MemoryFiles()
    log = filled(files)
    assert log.recovery_point == 0
    assert reopen(files).recovery_point == 0, "what recovery found may still be in memory only"
    log = reopen(files, recovery_point=12)
    assert (log.recovery_point, log.next) == (12, 35)
    log.flush()
    assert log.recovery_point == 35
    append(log, sized(BATCH_BYTES))
    assert (log.recovery_point, log.messages_unflushed) == (35, 1)


def test_one_sync_serves_all_that_was_written_before_it() -> None:
    files = MemoryFiles()
    log = filled(files, 3)
    log.flush()
    assert log.files_to_sync() == []
    append(log, sized(BATCH_BYTES))
    append(log, sized(BATCH_BYTES))
    to = log.written
    items = log.files_to_sync()
    assert len(items) == 1, "only the log file of the active segment"
    append(log, sized(BATCH_BYTES))
    for item in items:
        item.sync()
    log.mark_flushed(to)
    assert (log.flushed, log.written, log.messages_unflushed) == (5, 6, 1)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_write_error_is_final_until_the_log_is_opened_again(error: int) -> None:
    files = MemoryFiles()
    log = filled(files)
    files.fail("/data", error)
    with pytest.raises(StorageFailed, match=r"00000000000000000030\.log"):
        append(log, sized(BATCH_BYTES))
    assert (log.next, log.written) == (35, 35)
    for call in (
        lambda: append(log, sized(BATCH_BYTES)),
        lambda: log.read(0, max_bytes=1, limit=1, at_least_one=True),
        lambda: log.truncate(Offset(3)),
        lambda: log.retain(NOW),
        log.flush,
    ):
        with pytest.raises(Refused, match="KAFKA_STORAGE_ERROR"):
            call()
    log.close()
    files.heal("/data")
    log = reopen(files)
    assert log.next == 35
    append(log, sized(BATCH_BYTES))


def test_a_disk_that_fills_up_leaves_a_torn_batch_that_recovery_cuts() -> None:
    files = MemoryFiles(capacity_bytes=2_000)
    log = Log.create(files, D, NAME, TOPIC_ID, PlainLogSettings(), now=NOW)
    for _ in range(19):
        append(log, sized(BATCH_BYTES))
    with pytest.raises(StorageFailed, match="No space left"):
        append(log, sized(BATCH_BYTES))
    count = log.next
    files.capacity_bytes = 1 << 30
    log = reopen(files)
    assert log.next == count
    assert 0 < log.cut_bytes < BATCH_BYTES


def test_a_stop_at_any_step_of_a_roll_loses_nothing_that_was_flushed() -> None:
    class Stopped(Exception):
        pass

    step = 0
    finished = False
    while not finished:
        files = MemoryFiles()
        files.makedirs("/data")
        files.sync_dir("/")
        log = filled(files, 10)
        log.flush()
        left = step

        def stop(what: str, path: str) -> None:
            nonlocal left
            if left == 0:
                raise Stopped
            left -= 1

        files.before = stop
        try:
            append(log, sized(BATCH_BYTES))
            log.flush()
            finished = True
        except Stopped:
            step += 1
        files.before = None
        flushed = log.flushed
        files.crash()
        log = reopen(files, recovery_point=10)
        assert log.next >= flushed >= 10
        assert readable(log) == list(range(log.next))
    assert step > 5


def test_a_compacted_gap_at_the_end_of_a_segment_leads_to_the_next_one() -> None:
    files = MemoryFiles()
    log = Log.create(files, D, NAME, TOPIC_ID, SETTINGS, now=NOW)
    log.append_exact(batch(base=3) + batch(base=8), now=NOW)
    log.roll(NOW)
    log.append_exact(batch(base=20), now=NOW)
    log.roll(NOW)
    log.append_exact(batch(base=21), now=NOW)
    log.close()
    log = reopen(files, clean=True)
    assert readable(log) == [3, 8, 20, 21]
    for offset, wanted in ((0, 3), (3, 3), (4, 8), (9, 20), (20, 20), (21, 21)):
        read = log.read(offset, max_bytes=1, limit=22, at_least_one=True)
        assert header_of(read.spans[0].read()).base_offset == wanted


def truncated_and_rolled(files: MemoryFiles) -> Log:
    """Cut back to the middle of a segment, and on with a batch so large that it needs a segment of its own."""
    files.makedirs("/data")
    files.sync_dir("/")
    log = filled(files, 10)
    log.flush()
    log.truncate(Offset(8), now=NOW)
    append(log, sized(950))
    assert bases(log) == [0, 8]
    return log


def test_a_truncation_is_durable_with_the_next_flush_even_when_its_segment_was_sealed_meanwhile() -> None:
    files = MemoryFiles()
    truncated_and_rolled(files).flush()
    files.crash()
    log = reopen(files, recovery_point=9)
    assert readable(log) == list(range(9))
    assert log.segments[0].size == 8 * BATCH_BYTES


def test_a_truncation_that_a_crash_undid_leaves_no_offset_twice() -> None:
    files = MemoryFiles()
    truncated_and_rolled(files)
    files.crash(keep_names=True)
    # The recovery point was written after the truncation, so only what follows it is scanned.
    log = reopen(files, recovery_point=8)
    assert readable(log) == list(range(8))
    append(log, sized(BATCH_BYTES))
    assert readable(log) == list(range(9))


@pytest.mark.parametrize("told", [7, 15, 34])
def test_after_a_stop_the_start_is_not_believed_that_the_epochs_contradict(told: int) -> None:
    """The checkpoint is text without a checksum: a digit that changed would take records from every replica."""
    files = MemoryFiles()
    log = filled(files, 35)
    log.commit_to(log.next)
    log.advance_start(Offset(5))
    log.close()
    log = reopen(files, clean=True, recovery_point=35, log_start=told)
    assert log.log_start == 5
    log = reopen(files, clean=True, recovery_point=35, log_start=3)
    assert log.log_start == 3, "what was trimmed is shown again rather than more lost"
