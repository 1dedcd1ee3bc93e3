"""Batches that somebody else numbered: a follower's append, and where a log ends after it was cut."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.errors import Refused
from penstock.model.ids import Millis, Offset, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles
from tests.unit.storage.batches import TRANSACTIONAL, batch, marker

DIRECTORY = "/data/t-0"
NOW = Millis(1_700_000_000_000)
SETTINGS = PlainLogSettings(segment_bytes=3_000, index_interval_bytes=200)


def new_log(files: MemoryFiles | None = None) -> Log:
    return Log.create(files or MemoryFiles(), DIRECTORY, TopicPartition("t", 0), Uuid(b"\x01" * 16), SETTINGS, now=NOW)


def history(random: Random, count: int) -> list[bytes]:
    """Batches with gaps, epochs, producers and transactions that end well or badly."""
    made, base, epoch, sequences = [], 0, 0, {1: 0, 2: 0}
    for _ in range(count):
        base += random.choice((0, 0, 0, 7))
        epoch += random.random() < 0.1
        size, producer = random.randrange(1, 5), random.randrange(4)
        if producer == 3:
            one = marker(1, 0, aborts=random.random() < 0.5, base=base)
            one[12:16] = epoch.to_bytes(4, "big")
            size = 1
        elif producer in sequences:
            identity = (producer, 0, sequences[producer])
            attributes = TRANSACTIONAL if producer == 1 else 0
            one = batch(size, base=base, epoch=epoch, producer=identity, attributes=attributes, timestamp=NOW + base)
            sequences[producer] += size
        else:
            one = batch(size, base=base, epoch=epoch, value=b"x" * random.randrange(200), timestamp=NOW + base)
        made.append(bytes(one))
        base += size
    return made


def files_of(log: Log) -> dict[str, bytes]:
    for segment in log.segments:
        segment.save()
    files = log.files
    names = [name for name in files.listdir(DIRECTORY) if not name.endswith(".deleted")]
    return {name: files.read(f"{DIRECTORY}/{name}") for name in names}


@pytest.mark.parametrize("seed", range(20))
def test_many_batches_at_once_leave_the_files_that_one_at_a_time_leaves(seed: int) -> None:
    random = Random(seed)
    batches = history(random, 120)
    single, bulk = new_log(), new_log()
    for one in batches:
        single.append_exact(one, now=NOW, verify=True)
    while batches:
        count = random.randrange(1, 40)
        bulk.append_exact(b"".join(batches[:count]), now=NOW, verify=True)
        del batches[:count]
    assert len(bulk.segments) > 3
    assert files_of(bulk) == files_of(single)
    assert bulk.describe() == single.describe()
    assert bulk.epochs.entries() == single.epochs.entries()
    assert bulk.producers.records() == single.producers.records()
    assert bulk.aborted(0, bulk.next) == single.aborted(0, single.next)


def test_a_batch_that_is_bad_keeps_the_good_ones_before_it_out_too() -> None:
    log = new_log()
    damaged = batch(base=1)
    damaged[-1] ^= 1
    with pytest.raises(Refused, match="checksum"):
        log.append_exact(bytes(batch(base=0)) + bytes(damaged), now=NOW, verify=True)
    assert (log.next, log.size_bytes) == (0, 0)


@pytest.mark.parametrize("to", [21, 25, 29])
def test_a_log_that_is_cut_inside_of_a_batch_ends_where_that_began(to: int) -> None:
    log = new_log()
    log.append_exact(b"".join(bytes(batch(10, base=base, epoch=1)) for base in range(0, 50, 10)), now=NOW)
    log.commit_to(log.next)
    assert log.truncate(Offset(to), now=NOW)
    assert (log.next, log.committed) == (20, 20)
    log.append_exact(bytes(batch(10, base=20, epoch=2)), now=NOW)
    assert log.next == 30


def test_a_cut_between_batches_keeps_the_gap_before_it() -> None:
    """Offsets that compaction took are not asked for again."""
    log = new_log()
    log.append_exact(bytes(batch(10, base=0)) + bytes(batch(10, base=40)), now=NOW)
    log.truncate(Offset(30), now=NOW)
    assert log.next == 30


def test_a_segment_is_named_by_the_end_of_the_one_before_it() -> None:
    log = new_log()
    for base in range(0, 2_000, 50):
        log.append_exact(bytes(batch(10, base=base, value=b"x" * 30)), now=NOW)
    ends = [segment.base for segment in log.segments]
    assert len(ends) > 3
    assert all(base % 50 == 10 for base in ends[1:])
