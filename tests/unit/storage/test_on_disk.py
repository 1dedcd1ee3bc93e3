"""The same log on a real disk, with far fewer descriptors than files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from penstock.kernels import scan_batches
from penstock.model.ids import Epoch, Millis, PartitionKey, TopicPartition, Uuid
from penstock.storage.checkpoints import OFFSET_CHECKPOINTS
from penstock.storage.files import DiskFiles
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.storage.store import LogStore

from .batches import header_of, sized

SETTINGS = PlainLogSettings(segment_bytes=2_000, index_interval_bytes=300, retention_bytes=6_000)
NOW = Millis(1_000)


def opened(root: Path, max_open: int = 8) -> LogStore:
    directories = [f"{root}/a", f"{root}/b"]
    store = LogStore(
        DiskFiles(max_open), directories, settings_for=lambda _: SETTINGS, new_uuid=lambda: Uuid(os.urandom(16))
    )
    store.open(cluster_id="c", node_id=1, now=NOW)
    return store


def append(log: Log, count: int) -> None:
    for _ in range(count):
        data = sized(150)
        log.append(data, header_of(data), epoch=Epoch(0), now=NOW)
    log.commit_to(log.next)


def readable(log: Log) -> list[int]:
    offset, seen = log.log_start, []
    while offset < log.written:
        read = log.read(offset, max_bytes=700, limit=log.written, at_least_one=True)
        seen += [header.base_offset for _, header in scan_batches(read.spans[0].read())]
        offset = read.end
    return seen


def test_a_store_with_few_descriptors_serves_many_logs_over_restarts(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = [PartitionKey(Uuid(b"t" * 16), partition) for partition in range(12)]
    for partition in range(12):
        append(store.create(TopicPartition("t", partition), key[0].topic_id, SETTINGS, now=NOW), 60)
    assert all(readable(log) == list(range(60)) for log in store.logs.values())
    assert isinstance(store.files, DiskFiles)
    assert store.files.open_count <= 8
    for log in store.logs.values():
        log.retain(NOW)
        assert readable(log) == list(range(log.log_start, 60))
    store.remove(key[3], now=NOW)
    store.write_checkpoints()
    store.close(broker_epoch=17)

    store = opened(tmp_path)
    assert store.clean_broker_epoch == 17
    assert sorted(store.logs) == sorted(set(key) - {key[3]})
    assert all(log.scanned_bytes == 0 for log in store.logs.values())
    assert all(readable(log) == list(range(log.log_start, 60)) for log in store.logs.values())
    store.purge(0)
    assert not [name for name in os.listdir(tmp_path / "a") if name.endswith("-delete")]
    for log in store.logs.values():
        append(log, 3)
        log.purge(60_000)
    # No clean stop: the locks go with the process, here with the store.
    for directory in store.directories:
        directory.unlock()

    store = opened(tmp_path)
    assert store.clean_broker_epoch == -1
    assert all(readable(log) == list(range(log.log_start, 63)) for log in store.logs.values())
    store.close(broker_epoch=18)


def test_a_process_out_of_descriptors_gives_up_idle_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = DiskFiles(max_open=100)
    idle = [files.open(f"{tmp_path}/{i}", create=True) for i in range(10)]
    real, failures = os.open, [errno.EMFILE]

    def scarce(path: str, flags: int, mode: int = 0o777) -> int:
        if failures:
            raise OSError(failures.pop(), "Too many open files")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", scarce)
    files.open(f"{tmp_path}/new", create=True).pwritev((b"x",), 0)
    assert files.open_count == 1
    idle[0].pwritev((b"y",), 0)
    assert files.read(f"{tmp_path}/0") == b"y"


def test_syncs_that_were_put_off_are_made_up_for_and_names_come_last(tmp_path: Path) -> None:
    files = DiskFiles()
    name, other = str(tmp_path / "checkpoint"), str(tmp_path / "segment")
    with files.one_sync(str(tmp_path)):
        files.write_atomic(name, b"new")
        file = files.open(other, create=True)
        file.pwritev((b"data",), 0)
        file.sync()
        assert not files.exists(name), "a file takes its name when its bytes are safe"
    assert (files.read(name), files.read(other)) == (b"new", b"data")
    files.write_atomic(name, b"newer")
    assert files.read(name) == b"newer"


def test_checkpoints_older_than_a_log_are_not_about_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    key = PartitionKey(Uuid(b"n" * 16), 0)
    name = TopicPartition("t", 0)
    append(store.create(name, key.topic_id, SETTINGS, store.directories[0].id, now=NOW), 60)
    made_ns = (tmp_path / "a" / "t-0" / "partition.metadata").stat().st_mtime_ns
    for directory in store.directories:
        directory.unlock()
    # As a release left them that forgot a deleted topic in memory only.
    for checkpoint in OFFSET_CHECKPOINTS:
        path = tmp_path / "a" / checkpoint
        path.write_bytes(b"0\n1\nt 0 50\n")
        os.utime(path, ns=(made_ns - 1_000_000_000, made_ns - 1_000_000_000))
    log = opened(tmp_path).logs[key]
    assert readable(log) == list(range(60))
    assert (log.committed, log.flushed, log.cleaned_to) == (0, 0, None)
    assert (tmp_path / "a" / "log-start-offset-checkpoint").read_bytes() == b"0\n0\n"
