"""Whatever bytes an index has, reads and searches find what the batches say.

Indexes carry no checksum, and after a clean stop nobody makes them again. So each entry that is used is held against
the batch that it names.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from penstock.model.ids import Millis, Offset, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.testing.memory_files import MemoryFiles

from .batches import sized
from .test_retention import SETTINGS, D, append

COUNT, SEALED = 24, 14
FIRST, LAST = f"{D}/{0:020}", f"{D}/{SEALED:020}"
# Two writers whose clocks differ: times do not rise from record to record.
TIMES = [1_000 * number + (-1_500 if number % 2 else 0) for number in range(COUNT)]


def stopped() -> MemoryFiles:
    """A sealed segment of 14 batches and an active one of 10, with an index entry for nearly every other one."""
    files = MemoryFiles()
    settings = replace(SETTINGS, segment_bytes=SEALED * 100)
    log = Log.create(files, D, TopicPartition("orders", 0), Uuid(b"1" * 16), settings, now=Millis(0))
    for timestamp in TIMES:
        append(log, sized(100, timestamp=timestamp + 10_000))
    assert [segment.base for segment in log.segments] == [0, SEALED]
    log.close()
    return files


def damaged(path: str, data: bytes) -> Log:
    files = stopped()
    files.write_atomic(path, data)
    settings = replace(SETTINGS, segment_bytes=SEALED * 100)
    log = Log.open(files, D, TopicPartition("orders", 0), Uuid(b"1" * 16), settings, now=Millis(0), clean=True)
    log.commit_to(log.next)
    return log


def assert_right(log: Log) -> None:
    """Every offset is read, alone, in pieces and at once; every time is searched."""
    for max_bytes in (50, 10_000):
        offset = Offset(0)
        while offset < COUNT:
            read = log.read(offset, max_bytes=max_bytes, limit=COUNT, at_least_one=True)
            data = b"".join(span.read() for span in read.spans)
            assert len(data) % 100 == 0
            found = [int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data), 100)]
            assert found == [*range(offset, read.end)]
            assert found, "a read goes forward"
            offset = read.end
    for offset in reversed(range(COUNT)):
        read = log.read(offset, max_bytes=50, limit=COUNT, at_least_one=True)
        assert read.spans[0].read()[:8] == offset.to_bytes(8, "big")
        limited = log.read(0, max_bytes=10_000, limit=offset + 1, at_least_one=True)
        assert limited.end == min(offset + 1, SEALED)
    for wanted in range(8_000, 10_000 + 1_000 * COUNT, 900):
        expected = next(((t + 10_000, n) for n, t in enumerate(TIMES) if t + 10_000 >= wanted), None)
        assert log.offset_for_time(wanted, COUNT) == expected
    assert log.max_timestamp() == max((t + 10_000, n) for n, t in enumerate(TIMES))


INDEXES = [f"{FIRST}.index", f"{FIRST}.timeindex", f"{LAST}.index", f"{LAST}.timeindex"]


@pytest.mark.parametrize("path", INDEXES)
def test_a_bit_that_flipped_in_an_index_changes_nothing_that_is_found(path: str) -> None:
    sound = stopped().read(path)
    assert len(sound) > 24, "there is something to lose"
    for bit in range(0, len(sound) * 8, 7):
        data = bytearray(sound)
        data[bit // 8] ^= 1 << bit % 8
        try:
            assert_right(damaged(path, bytes(data)))
        except AssertionError as failure:
            raise AssertionError(f"bit {bit} of {path}: {failure}") from failure


@pytest.mark.parametrize("path", INDEXES)
def test_an_index_of_other_bytes_changes_nothing_that_is_found(path: str) -> None:
    chance = Random(1)
    sound = stopped().read(path)
    for _ in range(8):
        size = chance.randrange(len(sound) + 1)
        whole = chance.randbytes(len(sound))
        for data in (
            whole, whole[:size], sound[:size], sound + whole[: size or 1], sound[:size] + bytes(len(sound) - size),
            bytes(size) + sound[size:], whole[:size] + sound[size:], sound[12:] + sound[:12],
        ):  # fmt: skip
            try:
                assert_right(damaged(path, data))
            except Exception as failure:
                raise AssertionError(f"{path} is {data.hex()} and not {sound.hex()}: {failure!r}") from failure
