"""A directory goes file by file, and whoever looks meanwhile sees how far that is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.storage.files import DiskFiles
from penstock.storage.removal import TreeRemoval
from penstock.testing.memory_files import MemoryFiles


class Watched(DiskFiles):
    """Notes what a removal says that it is at, whenever a file goes."""

    def __init__(self) -> None:
        super().__init__(max_open=8)
        self.removal: TreeRemoval | None = None
        self.seen: list[str] = []

    def remove(self, path: str) -> None:
        assert self.removal is not None
        self.seen.append(self.removal.path)
        super().remove(path)


def test_a_directory_is_removed_file_by_file(tmp_path: Path) -> None:
    files, directory = Watched(), tmp_path / "t-0.delete"
    (directory / "somebody's").mkdir(parents=True)
    (directory / "somebody's" / "notes").touch()
    for name in ("1.log", "2.log"):
        (directory / name).touch()
    files.removal = TreeRemoval(files, str(directory))
    files.removal()
    assert not directory.exists()
    assert files.seen == [f"{directory}/{name}" for name in ("1.log", "2.log", "somebody's")]


def test_a_directory_in_memory_is_removed_as_one_on_a_disk() -> None:
    files = MemoryFiles()
    files.makedirs("/d/t-0.delete/more")
    files.open("/d/t-0.delete/1.log", create=True)
    TreeRemoval(files, "/d/t-0.delete")()
    assert files.listdir("/d") == []


def test_a_directory_that_is_gone_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        TreeRemoval(DiskFiles(max_open=8), os.path.join(tmp_path, "gone"))()
