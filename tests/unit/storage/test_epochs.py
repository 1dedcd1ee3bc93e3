"""Who led from where on."""

from __future__ import annotations

from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage.checkpoints import EpochStart
from penstock.storage.epochs import Epochs
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of

NOW = Millis(2_000)


def epochs(*entries: tuple[int, int], end: int = 100) -> Epochs:
    return Epochs([EpochStart(Epoch(e), Offset(s)) for e, s in entries], lambda: Offset(end))


def test_the_newest_epoch_ends_at_the_log_end_and_others_where_the_next_begins() -> None:
    cache = epochs((2, 10), (4, 30), (7, 50))
    assert cache.end_of(7) == (7, 100)
    assert cache.end_of(4) == (4, 50)
    assert cache.end_of(3) == (2, 30)
    assert cache.end_of(2) == (2, 30)
    assert cache.end_of(1) == (1, 10), "an epoch before the first answers with its own number"
    assert cache.end_of(8) == (-1, -1)
    assert cache.end_of(-1) == (-1, -1)
    assert epochs().end_of(0) == (-1, -1)


def test_the_epoch_of_an_offset() -> None:
    cache = epochs((2, 10), (4, 30))
    assert [cache.epoch_at(offset) for offset in (9, 10, 29, 30, 99)] == [-1, 2, 2, 4, 4]


def test_an_entry_that_contradicts_older_ones_replaces_them() -> None:
    cache = epochs((2, 10), (4, 30), (7, 50))
    cache.assign(Epoch(7), Offset(60))
    assert cache.entries()[-1] == (7, 50), "an epoch keeps its first offset"
    cache.assign(Epoch(8), Offset(30))
    assert cache.entries() == [(2, 10), (8, 30)]
    cache.assign(Epoch(5), Offset(40))
    assert cache.entries() == [(2, 10), (5, 40)]
    assert cache.latest == 5


def test_truncation_from_both_ends() -> None:
    cache = epochs((2, 10), (4, 30), (7, 50))
    cache.truncate_from_end(50)
    assert cache.entries() == [(2, 10), (4, 30)]
    cache.truncate_from_start(20)
    assert cache.entries() == [(2, 20), (4, 30)]
    cache.truncate_from_start(30)
    assert cache.entries() == [(4, 30)]
    cache.truncate_from_start(35)
    assert cache.entries() == [(4, 35)]
    cache.truncate_from_end(35)
    assert (cache.entries(), cache.latest) == ([], -1)


def log_with_epochs(files: MemoryFiles) -> Log:
    log = Log.create(
        files, "/d/t-0", TopicPartition("t", 0), Uuid(b"1" * 16), PlainLogSettings(segment_bytes=300), now=NOW
    )
    for epoch in (0, 0, 3, 3, 3, 5):
        data = batch(2, value=b"v" * 50)
        log.append(data, header_of(data), epoch=Epoch(epoch), now=NOW)
    return log


def test_a_log_learns_epochs_from_what_is_appended_and_keeps_them_over_every_stop() -> None:
    files = MemoryFiles()
    log = log_with_epochs(files)
    known = [(0, 0), (3, 4), (5, 10)]
    assert log.epochs.entries() == known
    assert (log.epochs.end_of(5), log.epochs.end_of(4)) == ((5, 12), (3, 10))
    files.kill()
    opened = {"now": NOW, "name": TopicPartition("t", 0), "topic_id": Uuid(b"1" * 16)}
    log = Log.open(files, "/d/t-0", settings=PlainLogSettings(), clean=False, **opened)  # type: ignore[arg-type]
    assert log.epochs.entries() == known, "found again in the batches"
    log.truncate(Offset(10))
    assert log.epochs.entries() == known[:2]
    log.commit_to(log.next)
    log.advance_start(Offset(6))
    log.close()
    log = Log.open(files, "/d/t-0", settings=PlainLogSettings(), clean=True, log_start=6, **opened)  # type: ignore[arg-type]
    assert log.epochs.entries() == [(3, 6)]


def test_epochs_are_on_disk_before_the_recovery_point_passes_them() -> None:
    files = MemoryFiles()
    log = log_with_epochs(files)
    assert not files.exists("/d/t-0/leader-epoch-checkpoint")
    log.flush()
    assert files.read("/d/t-0/leader-epoch-checkpoint") == b"0\n3\n0 0\n3 4\n5 10\n"
