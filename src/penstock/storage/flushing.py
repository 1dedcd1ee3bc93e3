"""Things to sync. Each `sync` is safe in a thread: it holds its own descriptor or its own copy of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.model.ports import File, Files
from penstock.storage.files import DiskFile, OpenFile
from penstock.storage.shared_sync import Volume, start_writing


class Syncable(Protocol):
    """Something that is durable when `sync` returns."""

    def sync(self) -> None: ...


class Pinned:
    """Bytes of a file on a real disk, by a descriptor that stays open until this is gone."""

    __slots__ = ("file",)

    def __init__(self, file: OpenFile) -> None:
        self.file = file

    @property
    def device(self) -> int:
        return self.file.device

    def sync(self) -> None:
        self.file.sync()


def pinned(file: File) -> Syncable:
    """The file as it is now, whatever it is called when the sync runs."""
    return Pinned(file.pin()) if isinstance(file, DiskFile) else file


class PathSync:
    """A small file that was written and closed. It may be gone by now; then nobody needs it."""

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def sync(self) -> None:
        try:
            file = self._files.open(self.path)
        except FileNotFoundError:
            return
        file.sync()
        file.close()


class TextWrite:
    """A checkpoint with the content that it had when this was made."""

    __slots__ = ("_files", "_text", "path")

    def __init__(self, files: Files, path: str, text: bytes) -> None:
        self._files = files
        self.path = path
        self._text = text

    def sync(self) -> None:
        self._files.write_atomic(self.path, self._text)


class DirectorySync:
    """Names in a directory: creates, renames, removals."""

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def sync(self) -> None:
        self._files.sync_dir(self.path)


def is_data(item: Syncable) -> bool:
    """Whether it is a file's bytes alone, whose sync may come before, after or with that of any other file's bytes."""
    return item.__class__ is Pinned or not isinstance(item, (PathSync, TextWrite, DirectorySync))


class SyncTogether:
    """Files to sync by as few calls as it takes; called, it returns what failed, by its place in `items`.

    `volume` is given when all of them lie on it and one sync of everything there pays. For a thread: it only waits for
    the disk. What it does between two waits keeps the loop from running, so that is next to nothing.

    `path` is the file that is waited for, read from other threads: a thousand files that take long are no disk that
    hangs.
    """

    __slots__ = ("_volume", "items", "path")

    def __init__(self, items: Sequence[Syncable], volume: Volume | None = None) -> None:
        self.items, self._volume = items, volume
        self.path = _path_of(items[0])

    def __call__(self) -> dict[int, OSError]:
        if self._volume is not None and self._volume.sync():
            return {}
        if len(self.items) > 1:
            # While the first is waited for the others are written too.
            for item in self.items:
                if isinstance(item, Pinned):
                    self.path = item.file.path
                    start_writing(item.file.fileno())
        failures: dict[int, OSError] = {}
        for place, item in enumerate(self.items):
            self.path = _path_of(item)
            try:
                item.sync()
            except OSError as error:
                failures[place] = error
        return failures


def _path_of(item: Syncable) -> str | None:
    return item.file.path if isinstance(item, Pinned) else getattr(item, "path", None)


def lie_on(volume: Volume, items: Sequence[Syncable]) -> bool:
    """Whether all of them are files of one volume."""
    return all(isinstance(item, Pinned) and item.device == volume.device for item in items)
