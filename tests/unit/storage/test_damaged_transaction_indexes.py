"""A transaction index whose bytes changed is made again: readers leave out what was aborted, and nothing else."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.ids import Millis, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

from .batches import TRANSACTIONAL, batch, marker
from .test_producers import DIRECTORY, SETTINGS, append, new_log, produce

FOUND = [(7, 0), (9, 1)]
"""One transaction begins in an earlier segment than it is aborted in."""


def stopped() -> tuple[MemoryFiles, str]:
    """Files with a transaction index, and its path."""
    files = MemoryFiles()
    log = new_log(files)
    produce(log, 0, producer=7, attributes=TRANSACTIONAL)
    produce(log, 0, producer=9, attributes=TRANSACTIONAL)
    for _ in range(20):
        append(log, batch(value=b"v" * 100))
    produce(log, 0, producer=8, attributes=TRANSACTIONAL)
    for producer, aborts in ((7, True), (8, False), (9, True)):
        append(log, marker(producer, 0, aborts=aborts))
    for _ in range(20):
        append(log, batch(value=b"v" * 100))
    (indexed,) = (segment for segment in log.segments if segment.aborted.present)
    assert 0 < indexed.base < log.segments[-1].base
    log.commit_to(log.next)
    assert log.aborted(0, 50) == FOUND
    log.close()
    return files, indexed.aborted.path


def found(files: MemoryFiles) -> list[tuple[int, int]]:
    log = Log.open(files, DIRECTORY, TopicPartition("orders", 0), Uuid(b"1" * 16), SETTINGS, now=Millis(0), clean=True)
    return log.aborted(0, 50)


def test_a_flipped_bit_changes_nothing_that_is_told() -> None:
    files, path = stopped()
    sound = files.read(path)
    assert len(sound) == 2 * 34
    for bit in range(0, len(sound) * 8, 5):
        data = bytearray(sound)
        data[bit // 8] ^= 1 << bit % 8
        files.write_atomic(path, bytes(data))
        assert found(files) == FOUND, f"bit {bit}"


@pytest.mark.parametrize("size", [0, 1, 33, 34, 64, 68, 100])
def test_other_bytes_change_nothing_that_is_told(size: int) -> None:
    files, path = stopped()
    for data in (bytes(size), Random(size).randbytes(size)):
        if data:
            files.write_atomic(path, data)
            assert found(files) == FOUND


def test_a_flipped_bit_among_many_entries_changes_nothing_that_is_told() -> None:
    files = MemoryFiles()
    settings = PlainLogSettings(segment_bytes=1 << 20)
    where = (files, DIRECTORY, TopicPartition("orders", 0), Uuid(b"1" * 16), settings)
    log = Log.create(*where, now=Millis(0))
    for number in range(12):
        for producer in (7, 8):
            produce(log, number, producer=producer, attributes=TRANSACTIONAL)
        for producer in (7, 8):
            append(log, marker(producer, 0, aborts=True))
    log.commit_to(log.next)
    ranges = [(start, start + width) for start in (0, 13, 40) for width in (1, 48)]
    wanted = [log.aborted(*each) for each in ranges]
    path = log.segments[0].aborted.path
    log.close()
    sound = files.read(path)
    assert len(sound) == 24 * 34
    for bit in range(3, len(sound) * 8, 101):
        data = bytearray(sound)
        data[bit // 8] ^= 1 << bit % 8
        files.write_atomic(path, bytes(data))
        for first, expected in zip(ranges, wanted, strict=True):
            log = Log.open(*where, now=Millis(0), clean=True)
            assert log.aborted(*first) == expected, f"bit {bit}, {first}"
        assert [log.aborted(*each) for each in ranges] == wanted
