"""Several directories, one store."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from penstock.model.errors import KAFKA_STORAGE_ERROR, LOG_DIR_NOT_FOUND, Corrupt, Refused, StorageFailed
from penstock.model.ids import Epoch, Millis, Offset, PartitionKey, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.log_directory import DirectoryInUse
from penstock.storage.meta_properties import WrongDirectory
from penstock.storage.settings import PlainLogSettings
from penstock.storage.store import LogStore
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of

SETTINGS = PlainLogSettings(segment_bytes=1_000, index_interval_bytes=100)
NOW = Millis(1_000)
TWO = ("/disk1/logs", "/disk2/logs")


def counting_uuids() -> Callable[[], Uuid]:
    given = 0

    def new_uuid() -> Uuid:
        nonlocal given
        given += 1
        return Uuid(given.to_bytes(2, "big") + b"\xaa" * 14)

    return new_uuid


def opened(
    files: MemoryFiles, directories: tuple[str, ...] = TWO, *, cluster_id: str = "c", node_id: int = 1
) -> LogStore:
    store = LogStore(files, directories, settings_for=lambda _: SETTINGS, new_uuid=counting_uuids())
    store.open(cluster_id=cluster_id, node_id=node_id, now=NOW)
    return store


def key(number: int, partition: int = 0) -> PartitionKey:
    return PartitionKey(Uuid(bytes([number]) * 16), partition)


def create(store: LogStore, number: int, partition: int = 0, **where: object) -> Log:
    name = TopicPartition(f"topic{number}", partition)
    return store.create(name, key(number).topic_id, SETTINGS, now=NOW, **where)  # type: ignore[arg-type]


def fill(log: Log, count: int = 20) -> None:
    for _ in range(count):
        data = batch(1, value=b"v" * 50)
        log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    log.commit_to(log.next)


def home(store: LogStore, log: Log) -> str:
    return store.directory_of(log).path


def test_a_new_log_goes_to_the_directory_with_the_fewest() -> None:
    store = opened(MemoryFiles())
    homes = [home(store, create(store, number)) for number in range(1, 5)]
    assert homes == ["/disk1/logs", "/disk2/logs", "/disk1/logs", "/disk2/logs"]


def test_a_named_directory_is_obeyed_and_an_unknown_one_refused() -> None:
    store = opened(MemoryFiles())
    second = store.directories[1].id
    assert {home(store, create(store, number, directory_id=second)) for number in (1, 2)} == {"/disk2/logs"}
    with pytest.raises(Refused) as refused:
        create(store, 3, directory_id=Uuid(b"?" * 16))
    assert refused.value.error is LOG_DIR_NOT_FOUND


def test_a_clean_stop_is_remembered_with_its_broker_epoch_and_saves_the_scan() -> None:
    files = MemoryFiles()
    store = opened(files)
    logs = [create(store, number) for number in (1, 2, 3)]
    for log in logs:
        fill(log)
    logs[0].advance_start(Offset(7))
    store.close(broker_epoch=42)
    assert files.read("/disk1/logs/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":42}'
    files.kill()

    store = opened(files)
    assert store.clean_broker_epoch == 42
    assert not files.exists("/disk1/logs/.kafka_cleanshutdown")
    found = [store.get(key(number)) for number in (1, 2, 3)]
    assert [(log.log_start, log.next, log.committed, log.scanned_bytes) for log in found if log] == [
        (7, 20, 20, 0), (0, 20, 20, 0), (0, 20, 20, 0),
    ]  # fmt: skip


def test_after_a_kill_the_logs_are_scanned_and_the_broker_epoch_is_unknown() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(create(store, 1))
    files.kill()
    store = opened(files)
    log = store.get(key(1))
    assert log is not None
    assert (store.clean_broker_epoch, log.next) == (-1, 20)
    assert log.scanned_bytes == log.size_bytes


def test_checkpoints_have_kafkas_bytes() -> None:
    files = MemoryFiles()
    store = opened(files)
    log = create(store, 1, partition=3)
    fill(log)
    log.advance_start(Offset(4))
    log.flush()
    store.write_checkpoints()
    assert files.read("/disk1/logs/recovery-point-offset-checkpoint") == b"0\n1\ntopic1 3 20\n"
    assert files.read("/disk1/logs/log-start-offset-checkpoint") == b"0\n1\ntopic1 3 4\n"
    assert files.read("/disk1/logs/replication-offset-checkpoint") == b"0\n1\ntopic1 3 20\n"
    assert files.read("/disk2/logs/replication-offset-checkpoint") == b"0\n0\n"


def test_a_log_start_at_a_segment_base_needs_no_checkpoint() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(create(store, 1))
    store.write_checkpoints()
    assert files.read("/disk1/logs/log-start-offset-checkpoint") == b"0\n0\n"


def test_the_cleaner_checkpoint_survives_a_restart() -> None:
    files = MemoryFiles()
    store = opened(files)
    log = create(store, 1)
    fill(log)
    log.cleaned_to = Offset(log.segments[-1].base)
    store.close(1)
    again = opened(files).get(key(1))
    assert again is not None
    assert again.cleaned_to == log.cleaned_to


def test_a_directory_of_another_cluster_or_node_is_refused_with_words() -> None:
    files = MemoryFiles()
    opened(files).close(1)
    with pytest.raises(WrongDirectory, match="belongs to cluster c, this node to other"):
        opened(files, cluster_id="other")
    files.kill()
    with pytest.raises(WrongDirectory, match="belongs to node 1, this node is 2"):
        opened(files, node_id=2)


def test_a_directory_in_use_is_refused() -> None:
    files = MemoryFiles()
    opened(files)
    with pytest.raises(DirectoryInUse, match="in use by another process"):
        opened(files)


def test_directory_ids_stay() -> None:
    files = MemoryFiles()
    store = opened(files)
    ids = [directory.id for directory in store.directories]
    store.close(1)
    assert [directory.id for directory in opened(files).directories] == ids


def test_a_failing_directory_goes_offline_alone() -> None:
    files = MemoryFiles()
    store = opened(files)
    sick, well = create(store, 1), create(store, 2)
    fill(sick)
    files.fail("/disk1", errno.EIO)
    data = batch()
    with pytest.raises(StorageFailed):
        sick.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    assert store.fail("/disk1/logs", "EIO") == [key(1)]
    with pytest.raises(Refused) as refused:
        store.get(key(1))
    assert refused.value.error is KAFKA_STORAGE_ERROR
    with pytest.raises(Refused):
        sick.read(0, max_bytes=1, limit=1, at_least_one=True)
    fill(well)
    assert home(store, create(store, 3)) == "/disk2/logs"
    store.write_checkpoints()
    store.close(5)
    assert not files.exists("/disk1/logs/.kafka_cleanshutdown")
    assert files.exists("/disk2/logs/.kafka_cleanshutdown")


def test_a_directory_that_works_again_is_read_anew_from_disk() -> None:
    files = MemoryFiles()
    store = opened(files)
    log = create(store, 1)
    fill(log, 5)
    files.fail("/disk1", errno.ENOSPC)
    data = batch()
    with pytest.raises(StorageFailed):
        log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    store.fail("/disk1/logs", "full")
    files.heal("/disk1")
    store.revive("/disk1/logs", NOW)
    again = store.get(key(1))
    assert again is not None
    assert again is not log
    assert again.next == 5
    fill(again, 1)


def test_a_directory_that_cannot_be_opened_leaves_the_others_working() -> None:
    files = MemoryFiles()
    opened(files).close(1)
    files.fail("/disk2", errno.EROFS)
    store = opened(files)
    assert [directory.online for directory in store.directories] == [True, False]
    assert home(store, create(store, 1)) == "/disk1/logs"


def test_no_working_directory_is_an_error_that_names_them_all_and_says_why() -> None:
    files = MemoryFiles()
    opened(files).close(1)
    files.fail("/", errno.EROFS)
    with pytest.raises(StorageFailed, match=r"/disk1/logs: .*/disk1/logs: .*Read-only.*/disk2/logs: .*Read-only"):
        opened(files)


def test_a_removed_log_is_renamed_at_once_and_purged_after_the_delay() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(create(store, 1, partition=4))
    store.remove(key(1, 4), now=NOW)
    assert store.get(key(1, 4)) is None
    (left,) = [name for name in files.listdir("/disk1/logs") if name.startswith("topic1")]
    assert left.startswith("topic1-4.")
    assert left.endswith("-delete")
    assert len(left) == len("topic1-4.") + 32 + len("-delete")
    assert store.purgeable(5_000) == [], "the delay begins with the first look at the clock"
    assert store.purgeable(64_999) == []
    store.purge(65_000)
    assert left not in files.listdir("/disk1/logs")


def test_a_clock_that_is_set_back_keeps_no_deleted_directory() -> None:
    """Seeds 3069, 3210, 3239 and 3408: what was due by the time of day stayed for as long as that was set back by."""
    files = MemoryFiles()
    store = opened(files)
    create(store, 1)
    store.remove(key(1), now=Millis(NOW + 90_000))
    store.purge(0)
    store.purge(60_000)
    assert not [name for name in files.listdir("/disk1/logs") if "topic1" in name]


def test_a_deletion_that_a_stop_interrupted_is_finished() -> None:
    files = MemoryFiles()
    store = opened(files)
    create(store, 1)
    store.remove(key(1), now=NOW)
    files.kill()
    store = opened(files)
    assert store.get(key(1)) is None
    store.purge(0)
    assert not [name for name in files.listdir("/disk1/logs") if "topic1" in name]


def test_a_topic_can_be_made_again_at_once_under_its_old_name() -> None:
    store = opened(MemoryFiles())
    first = create(store, 1)
    fill(first)
    store.remove(key(1), now=NOW)
    again = store.create(first.name, Uuid(b"n" * 16), SETTINGS, now=NOW)
    assert again.next == 0


def test_a_future_log_takes_over_and_survives_a_restart_on_the_way() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(create(store, 1))
    second = store.directories[1].id
    fill(create(store, 1, directory_id=second, future=True))
    store.close(1)
    files.kill()
    store = opened(files)
    assert list(store.futures) == [key(1)]
    log = store.promote(key(1), now=NOW)
    assert store.get(key(1)) is log
    assert log.directory == "/disk2/logs/topic1-0"
    fill(log, 1)
    assert len(log.read(0, max_bytes=9_999, limit=21, at_least_one=True).spans) == 1
    store.close(1)
    files.kill()
    again = opened(files).get(key(1))
    assert again is not None
    assert (again.directory, again.next) == ("/disk2/logs/topic1-0", 21)


def test_a_partition_that_nobody_knows_is_set_aside_and_kept() -> None:
    files = MemoryFiles()
    store = opened(files)
    create(store, 1)
    store.set_aside(key(1), now=NOW)
    store.settle()
    (left,) = [name for name in files.listdir("/disk1/logs") if "topic1" in name]
    assert left.endswith("-stray")
    store.close(1)
    files.kill()
    assert opened(files).logs == {}
    assert left in files.listdir("/disk1/logs")


def test_other_files_and_the_metadata_log_are_left_alone() -> None:
    files = MemoryFiles()
    opened(files).close(1)
    files.makedirs("/disk1/logs/__cluster_metadata-0")
    files.makedirs("/disk1/logs/lost+found")
    files.write_atomic("/disk1/logs/bootstrap.checkpoint", b"x")
    assert opened(files).logs == {}
    assert files.exists("/disk1/logs/__cluster_metadata-0")


def test_a_broken_checkpoint_costs_a_scan_and_nothing_else() -> None:
    files = MemoryFiles()
    store = opened(files)
    fill(create(store, 1))
    store.write_checkpoints()
    files.write_atomic("/disk1/logs/recovery-point-offset-checkpoint", b"0\nnonsense")
    files.kill()
    log = opened(files).get(key(1))
    assert log is not None
    assert log.next == 20


def test_an_unreadable_meta_properties_is_named() -> None:
    files = MemoryFiles()
    opened(files).close(1)
    files.write_atomic("/disk1/logs/meta.properties", b"version=7\n")
    with pytest.raises(Corrupt, match="version '7' of meta"):
        opened(files)


def test_describing_tells_sizes_lag_and_what_is_offline() -> None:
    files = MemoryFiles(capacity_bytes=1_000_000)
    store = opened(files)
    log = create(store, 1)
    fill(log)
    create(store, 1, directory_id=store.directories[1].id, future=True)
    first, second = store.describe()
    assert (first.path, first.why_offline, first.total_bytes) == ("/disk1/logs", None, 1_000_000)
    assert first.logs == [(log.name, log.topic_id, log.size_bytes, 0, False)]
    assert second.logs == [(log.name, log.topic_id, 0, 20, True)]
    store.fail("/disk2/logs", "gone")
    assert store.describe()[1].why_offline == "gone"
