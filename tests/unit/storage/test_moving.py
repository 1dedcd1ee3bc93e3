"""A log and its copy in another directory, step by step."""

from __future__ import annotations

import pytest

from penstock.model.ids import Epoch, Millis, Offset, PartitionKey, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.moving import align, begin_anew, missing_bytes, read_on
from penstock.storage.settings import PlainLogSettings
from penstock.storage.store import LogStore
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of

SETTINGS = PlainLogSettings(segment_bytes=1_000, index_interval_bytes=100)
NOW = Millis(1_000)
NAME = TopicPartition("orders", 0)
TOPIC = Uuid(b"\x01" * 16)
KEY = PartitionKey(TOPIC, 0)


def logs() -> tuple[Log, Log]:
    files = MemoryFiles()
    return (
        Log.create(files, "/a/orders-0", NAME, TOPIC, SETTINGS, now=NOW),
        Log.create(files, "/b/orders-0.x-future", NAME, TOPIC, SETTINGS, now=NOW),
    )


def fill(log: Log, count: int, *, epoch: int = 0, records: int = 1) -> None:
    for _ in range(count):
        data = batch(records, value=b"v" * 50)
        log.append(data, header_of(data), epoch=Epoch(epoch), now=NOW)
    log.commit_to(log.next)


def copy(source: Log, future: Log, end: int) -> None:
    """Copies up to `end`, batch by batch."""
    while future.next < end:
        future.append_exact(read_on(source, future, 1).spans[0].read(), now=NOW)


def test_a_copy_begins_with_the_batch_that_holds_the_start() -> None:
    source, future = logs()
    fill(source, 4, records=10)
    source.advance_start(Offset(25))
    align(source, future, now=NOW)
    assert (future.log_start, future.next) == (20, 20)
    copy(source, future, 40)
    align(source, future, now=NOW)
    assert (future.log_start, future.committed, future.next) == (25, 40, 40)


def test_a_copy_that_retention_overtook_begins_anew() -> None:
    source, future = logs()
    fill(source, 30)
    align(source, future, now=NOW)
    copy(source, future, 10)
    source.advance_start(Offset(20))
    align(source, future, now=NOW)
    assert (future.log_start, future.next) == (20, 20)


def test_a_copy_gives_up_what_the_source_lost() -> None:
    source, future = logs()
    fill(source, 20)
    copy(source, future, 20)
    source.truncate(Offset(12))
    align(source, future, now=NOW)
    assert future.next == 12
    fill(source, 8, epoch=3)
    copy(source, future, 20)
    source.truncate(Offset(12))
    fill(source, 9, epoch=4)
    align(source, future, now=NOW)
    assert future.next == 12, "the source is longer now, but it is another history"


def test_a_copy_ahead_by_an_unknown_epoch_goes_back_to_the_last_common_one() -> None:
    source, future = logs()
    fill(source, 10, epoch=1)
    copy(source, future, 10)
    fill(source, 5, epoch=2)
    copy(source, future, 15)
    source.truncate(Offset(8))
    align(source, future, now=NOW)
    assert (future.next, future.epochs.latest) == (8, 1)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_lost_segment_in_the_middle_is_noticed(missing: int) -> None:
    source, future = logs()
    fill(source, 40)
    copy(source, future, 40)
    assert sum(missing_bytes(source, future)) == 0
    lost = future.segments[missing + 1]
    size = lost.size
    future._segments.remove(lost)
    future._older.forget()
    assert sum(missing_bytes(source, future)) == size
    begin_anew(source, future, now=NOW)
    assert (future.next, future.size_bytes) == (0, 0)


def opened(files: MemoryFiles) -> LogStore:
    given = iter(range(1, 1_000))
    store = LogStore(
        files,
        ("/a", "/b"),
        settings_for=lambda _: SETTINGS,
        new_uuid=lambda: Uuid((files.lives * 1_000 + next(given)).to_bytes(16, "big")),
    )
    store.open(cluster_id="c", node_id=1, now=NOW)
    return store


@pytest.mark.parametrize("longer", ["/a", "/b"])
def test_of_two_logs_of_one_partition_the_longer_history_serves(longer: str) -> None:
    files = MemoryFiles()
    for directory in ("/a", "/b"):
        log = Log.create(files, f"{directory}/orders-0", NAME, TOPIC, SETTINGS, now=NOW)
        fill(log, 10)
        fill(log, 3 if directory == longer else 2, epoch=1)
        log.close()
    store = opened(files)
    assert store.logs[KEY].directory == f"{longer}/orders-0"
    other = "/b" if longer == "/a" else "/a"
    assert [name for name in files.listdir(other) if name.endswith("-stray")], "kept, but not served"
    assert [report.path for report in store.describe() if report.logs] == [longer]


def test_a_log_takes_its_cleaner_offset_along() -> None:
    store = opened(MemoryFiles())
    log = store.create(NAME, TOPIC, SETTINGS, now=NOW)
    fill(log, 5)
    log.cleaned_to = Offset(3)
    store.write_checkpoints()
    store.create(NAME, TOPIC, SETTINGS, store.directories[1].id, now=NOW, future=True)
    assert store.promote(KEY, now=NOW).cleaned_to == 3
    store.write_checkpoints()
    texts = [store.files.read(f"{each.path}/cleaner-offset-checkpoint") for each in store.directories]
    assert texts == [b"0\n0\n", b"0\n1\norders 0 3\n"]


def test_nothing_is_placed_in_a_cordoned_directory_unless_all_are() -> None:
    store = opened(MemoryFiles())
    first, second = store.directories
    first.cordoned = True
    made = [store.create(TopicPartition("t", n), TOPIC, SETTINGS, now=NOW) for n in range(3)]
    assert [store.directory_of(log) for log in made] == [second] * 3
    assert [report.cordoned for report in store.describe()] == [True, False]
    second.cordoned = True
    assert store.directory_of(store.create(TopicPartition("t", 3), TOPIC, SETTINGS, now=NOW)) is first


def test_whoever_finds_a_broken_directory_everybody_hears_of_it() -> None:
    files = MemoryFiles()
    store = opened(files)
    heard: list[tuple[LogDirectory, list[PartitionKey]]] = []
    store.on_failed = lambda directory, lost: heard.append((directory, lost))
    store.create(NAME, TOPIC, SETTINGS, now=NOW)
    store.fail("/a", "the test says so")
    store.fail("/a", "again")
    assert heard == [(store.directories[0], [KEY])]
