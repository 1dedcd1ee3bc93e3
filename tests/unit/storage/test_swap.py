"""Compaction comes in: plans, swaps, and a stop at every step of a swap."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from penstock.kernels import Record, scan_batches
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage.compaction import clean
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of, marker

NAME = TopicPartition("table", 0)
TOPIC_ID = Uuid(b"\x07" * 16)
DIRECTORY = "/data/table-0"
NOW = Millis(1_000_000)
SETTINGS = PlainLogSettings(segment_bytes=700, index_interval_bytes=100, compacts=True, deletes=False)


class Stopped(Exception):
    """The process ends here."""


def table(files: MemoryFiles, count: int = 40, keys: int = 3) -> Log:
    log = Log.create(files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW)
    for i in range(count):
        put(log, b"key%d" % (i % keys), b"value%d" % i)
    return log


def put(log: Log, key: bytes, value: bytes) -> None:
    data = batch(records=[Record(0, 1_000 + log.next, key, value)])
    log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    log.commit_to(log.next)


def contents(log: Log) -> list[int]:
    """The base offsets of all batches that a reader sees from the start on."""
    offset, seen = log.log_start, []
    while offset < log.written:
        read = log.read(offset, max_bytes=300, limit=log.written, at_least_one=True)
        if not read.size:
            break
        seen += [header.base_offset for _, header in scan_batches(read.spans[0].read())]
        offset = read.end
    return seen


def reopen(files: MemoryFiles) -> Log:
    files.kill()
    return Log.open(files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW, clean=False, high_watermark=40)


def test_a_pass_is_due_when_enough_is_dirty_and_not_before() -> None:
    log = table(MemoryFiles())
    plan = log.cleanable(NOW)
    assert plan is not None
    assert (plan.job.first_dirty, plan.job.clean_end, plan.dirty_ratio) == (0, log.segments[-1].base, 1.0)
    assert [facts.base for facts in plan.job.segments] == [segment.base for segment in log.segments[:-1]]
    log.cleaned_to = Offset(log.segments[-2].base)
    assert log.cleanable(NOW) is None
    log.settings = replace(SETTINGS, min_cleanable_dirty_ratio=0.0)
    assert log.cleanable(NOW) is not None
    log.settings = replace(SETTINGS, max_compaction_lag_ms=1)
    urgent = log.cleanable(NOW)
    assert urgent is not None
    assert urgent.urgent
    log.settings = SETTINGS
    log.cleaned_to = log.next
    assert log.cleanable(NOW) is None
    log.cleaned_to = None
    log.settings = replace(SETTINGS, compacts=False)
    assert log.cleanable(NOW) is None


def test_what_is_too_young_or_undecided_is_not_cleaned() -> None:
    log = table(MemoryFiles())
    log.settings = replace(SETTINGS, min_compaction_lag_ms=NOW - 1_020, min_cleanable_dirty_ratio=0.0)
    plan = log.cleanable(NOW)
    assert plan is not None
    # Record times are 1000 + offset: the segment that holds a record after 1020 is the first that is too young.
    assert plan.job.clean_end == next(s.base for s in log.segments if s.largest_timestamp() > 1_020)

    log = table(MemoryFiles(), count=10)
    data = batch(producer=(9, 0, 0), attributes=0x10)
    log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    for i in range(20):
        put(log, b"key", b"value%d" % i)
    plan = log.cleanable(NOW)
    assert plan is not None
    assert plan.job.clean_end <= 10
    assert (9, 10, 0) in plan.job.producers


def test_aborted_transactions_and_producers_are_told_to_the_pass() -> None:
    log = table(MemoryFiles(), count=2)
    data = batch(producer=(9, 0, 0), attributes=0x10)
    log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    end = marker(9, 0, aborts=True)
    log.append(end, header_of(end), epoch=Epoch(0), now=NOW)
    for i in range(20):
        put(log, b"key", b"value%d" % i)
    plan = log.cleanable(NOW)
    assert plan is not None
    assert plan.job.aborted == [(9, 2, 3, 4)]
    # The producer's data batch is known: its epoch did not change with the marker.
    assert plan.job.producers == [(9, 2, 0)]


def test_a_swap_keeps_the_newest_value_of_each_key_and_every_offset() -> None:
    files = MemoryFiles()
    log = table(files)
    before = contents(log)
    plan = log.cleanable(NOW)
    assert plan is not None
    result = clean(files, DIRECTORY, plan.job)
    span = log.read(0, max_bytes=300, limit=40, at_least_one=True).spans[0]
    old_bytes = span.read()
    assert log.swap(plan, result, now=NOW)
    after = contents(log)
    assert set(after) < set(before)
    active = log.segments[-1].base
    assert [offset for offset in after if offset < active] == [active - 3, active - 2, active - 1]
    assert span.read() == old_bytes, "who was reading goes on reading what was there"
    assert [name for name in files.listdir(DIRECTORY) if name.endswith(".deleted")]
    log.purge(0)
    log.purge(SETTINGS.file_delete_delay_ms)
    assert not [name for name in files.listdir(DIRECTORY) if name.endswith((".deleted", ".cleaned", ".swap"))]
    log.close()
    assert contents(Log.open(files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=NOW, clean=True)) == after


def test_a_pass_that_a_truncation_overtook_is_thrown_away() -> None:
    files = MemoryFiles()
    log = table(files)
    plan = log.cleanable(NOW)
    assert plan is not None
    result = clean(files, DIRECTORY, plan.job)
    log.truncate(Offset(log.segments[1].base + 1), now=NOW)
    left = contents(log)
    assert not log.swap(plan, result, now=NOW)
    assert contents(log) == left
    assert not [name for name in files.listdir(DIRECTORY) if name.endswith((".cleaned", ".swap"))]


def test_a_pass_over_what_was_cut_off_and_written_again_is_thrown_away() -> None:
    files = MemoryFiles()
    log = table(files)
    plan = log.cleanable(NOW)
    assert plan is not None
    result = clean(files, DIRECTORY, plan.job)
    end, last = log.next, log.segments[-2]
    log.truncate(Offset(last.base + 1), now=NOW)
    for number in range(log.next, end):
        put(log, b"other%d" % (number % 3), b"val%d" % number)
    assert last in log.segments
    assert last is not log.segments[-1]
    left = contents(log)
    assert not log.swap(plan, result, now=NOW)
    assert contents(log) == left


def steps_of_a_swap() -> int:
    files = MemoryFiles()
    log = table(files)
    plan = log.cleanable(NOW)
    assert plan is not None
    result = clean(files, DIRECTORY, plan.job)
    steps = 0

    def count(what: str, path: str) -> None:
        nonlocal steps
        steps += 1

    files.before = count
    log.swap(plan, result, now=NOW)
    return steps


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_stop_at_any_step_of_a_swap_leaves_the_old_or_the_new_segments(power_cut: bool) -> None:
    for stop_at in range(steps_of_a_swap() + 1):
        files = MemoryFiles()
        files.makedirs("/data")
        files.sync_dir("/")
        log = table(files)
        log.flush()
        old = contents(log)
        plan = log.cleanable(NOW)
        assert plan is not None
        result = clean(files, DIRECTORY, plan.job)
        stop_after(files, stop_at)
        with suppress(Stopped):
            log.swap(plan, result, now=NOW)
        files.before = None
        if power_cut:
            files.crash()
        log = reopen(files)
        assert log.next == 40
        seen = contents(log)
        kept = [37, 38, 39]
        # Each group of segments is replaced on its own, so some may be old and some new; last values always stay.
        assert set(seen) <= set(old)
        assert seen == sorted(seen)
        assert set(kept) <= set(seen)
        for segment in log.segments:
            present = [base for base in old if base >= segment.base]
            assert present, "no segment beyond the log"
        assert not [name for name in files.listdir(DIRECTORY) if name.endswith((".deleted", ".cleaned", ".swap"))]
        put(log, b"key", b"goes on")


def stop_after(files: MemoryFiles, steps: int) -> None:
    left = steps

    def stop(what: str, path: str) -> None:
        nonlocal left
        if left == 0:
            raise Stopped
        left -= 1

    files.before = stop
