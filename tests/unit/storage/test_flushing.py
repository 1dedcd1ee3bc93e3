"""Syncing many files at once: by one sync of the volume when that is cheap, else one by one, and never by less."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.storage import shared_sync
from penstock.storage.files import DiskFiles
from penstock.storage.flushing import (
    DirectorySync,
    PathSync,
    Pinned,
    SyncTogether,
    TextWrite,
    is_data,
    lie_on,
    pinned,
)
from penstock.storage.shared_sync import Volume


class Broken:
    """A file whose disk is gone."""

    def sync(self) -> None:
        raise OSError(5, "it is gone")


class Sound:
    def __init__(self) -> None:
        self.synced = 0

    def sync(self) -> None:
        self.synced += 1


def on_disk(home: Path, count: int) -> list[Pinned]:
    files = DiskFiles(max_open=64)
    made = [pinned(files.open(f"{home}/{number}", create=True)) for number in range(count)]
    return [each for each in made if isinstance(each, Pinned)]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that were synced by themselves, in order."""
    seen: list[int] = []
    monkeypatch.setattr(os, "fdatasync", seen.append)
    return seen


def sync(home: Path, files: list[Pinned]) -> dict[int, OSError]:
    """As a round of group commit does it."""
    volume = Volume(str(home))
    return SyncTogether(files, volume if volume.pays(len(files), 0) and lie_on(volume, files) else None)()


def test_many_files_of_one_volume_take_one_sync(
    tmp_path: Path, alone: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_sync, "dirty_bytes", lambda: 0)
    assert sync(tmp_path, on_disk(tmp_path, shared_sync.FILES_MIN)) == {}
    assert alone == []


@pytest.mark.parametrize("reason", ["few files", "much else to write", "two volumes", "an old kernel", "an error"])
def test_files_are_synced_one_by_one(
    reason: str, tmp_path: Path, alone: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = on_disk(tmp_path, shared_sync.FILES_MIN - (reason == "few files"))
    most = len(files) * shared_sync.DIRTY_PER_FILE_MAX_BYTES
    monkeypatch.setattr(shared_sync, "dirty_bytes", lambda: most + (reason == "much else to write"))
    if reason == "two volumes":
        files[-1] = Pinned(DiskFiles(max_open=64).open("/dev/null").pin())
    if reason == "an old kernel":
        monkeypatch.setattr(shared_sync, "_reports_lost_writes", lambda: False)
    if reason == "an error":
        monkeypatch.setattr(shared_sync, "_libc", _FailingLibrary)
    assert sync(tmp_path, files) == {}
    assert alone == [each.file.fileno() for each in files]


def test_after_an_error_a_volume_is_never_taken_at_its_word_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_sync, "dirty_bytes", lambda: 0)
    volume = Volume(str(tmp_path))
    with monkeypatch.context() as broken:
        broken.setattr(shared_sync, "_libc", _FailingLibrary)
        assert not volume.sync()
    assert not volume.sync()
    assert not volume.pays(1_000, 0)


class _FailingLibrary:
    def syncfs(self, _descriptor: int) -> int:
        return -1

    def sync_file_range(self, *_: object) -> int:
        return -1


def test_a_file_that_fails_is_named_and_the_others_are_synced() -> None:
    first, last = Sound(), Sound()
    failures = SyncTogether([first, Broken(), last])()
    assert list(failures) == [1]
    assert (first.synced, last.synced) == (1, 1)


def test_the_file_that_is_waited_for_is_told(tmp_path: Path) -> None:
    class Slow(Sound):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

        def sync(self) -> None:
            seen.append(together.path)

    seen: list[str | None] = []
    (first,) = on_disk(tmp_path, 1)
    together = SyncTogether([first, Slow("/d/2.log"), Slow("/d/3.log"), Sound()])
    assert together.path == f"{tmp_path}/0"
    assert together() == {}
    assert seen == ["/d/2.log", "/d/3.log"]


def test_names_and_small_files_have_an_order_and_bytes_have_none(tmp_path: Path) -> None:
    files = DiskFiles(max_open=64)
    ordered = [PathSync(files, "a"), TextWrite(files, "b", b""), DirectorySync(files, "c")]
    assert [is_data(each) for each in ordered] == [False, False, False]
    assert all(map(is_data, [*on_disk(tmp_path, 1), Sound()]))
