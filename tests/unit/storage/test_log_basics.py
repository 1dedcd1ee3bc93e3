"""Append, read, reopen."""

from __future__ import annotations

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import OFFSET_OUT_OF_RANGE, Refused
from penstock.model.ids import Epoch, Millis, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.reading import Read
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of, sized

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"\x07" * 16)
DIRECTORY = "/data/orders-0"
NOW = Millis(10_000)
SMALL = PlainLogSettings(segment_bytes=10_000, index_interval_bytes=1_000)


def new_log(files: MemoryFiles, settings: PlainLogSettings = SMALL) -> Log:
    return Log.create(files, DIRECTORY, NAME, TOPIC_ID, settings, now=NOW)


def reopen(files: MemoryFiles, *, clean: bool, settings: PlainLogSettings = SMALL, **known: int) -> Log:
    return Log.open(files, DIRECTORY, NAME, TOPIC_ID, settings, now=NOW, clean=clean, **known)


def append(log: Log, data: bytearray, epoch: int = 0) -> int:
    return log.append(data, header_of(data), epoch=Epoch(epoch), now=NOW).base


def offsets(read: Read) -> list[int]:
    return [header.base_offset for span in read.spans for _, header in scan_batches(span.read())]


def test_offsets_are_assigned_one_after_the_other_and_stamped_into_the_batch() -> None:
    log = new_log(MemoryFiles())
    ticket = log.append(first := batch(3), header_of(first), epoch=Epoch(5), now=NOW)
    assert (ticket.base, ticket.end, log.next, log.written) == (0, 3, 3, 3)
    append(log, second := batch(2), epoch=5)
    assert (header_of(second).base_offset, header_of(second).leader_epoch) == (3, 5)


def test_a_read_returns_whole_batches_from_the_one_that_holds_the_offset() -> None:
    log = new_log(MemoryFiles())
    for _ in range(4):
        append(log, batch(3))
    assert offsets(log.read(4, max_bytes=10_000, limit=12, at_least_one=True)) == [3, 6, 9]
    assert offsets(log.read(4, max_bytes=10_000, limit=9, at_least_one=True)) == [3, 6]
    assert offsets(log.read(4, max_bytes=10_000, limit=8, at_least_one=True)) == [3]
    assert offsets(log.read(4, max_bytes=1, limit=12, at_least_one=True)) == [3]
    assert log.read(4, max_bytes=1, limit=12, at_least_one=False) == Read([], 0, 4)
    assert log.read(12, max_bytes=1, limit=12, at_least_one=True) == Read([], 0, 12)


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_offset_that_the_log_does_not_have_is_refused(offset: int) -> None:
    log = new_log(MemoryFiles())
    append(log, batch(3))
    with pytest.raises(Refused) as refused:
        log.read(offset, max_bytes=1, limit=3, at_least_one=True)
    assert refused.value.error is OFFSET_OUT_OF_RANGE


def test_a_log_that_was_closed_cleanly_opens_without_a_scan_and_goes_on() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for _ in range(30):
        append(log, sized(900))
    log.close()
    log = reopen(files, clean=True, high_watermark=30)
    assert (log.next, log.flushed, log.committed, log.scanned_bytes) == (30, 30, 30, 0)
    append(log, sized(900))
    assert log.next == 31


def test_after_a_kill_only_segments_from_the_recovery_point_on_are_scanned() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for _ in range(35):
        append(log, sized(900))
    bases = [segment.base for segment in log.segments]
    assert bases == [0, 11, 22, 33]
    files.kill()
    log = reopen(files, clean=False, recovery_point=23)
    assert log.next == 35
    assert log.scanned_bytes == 13 * 900
