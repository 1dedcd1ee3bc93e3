"""Things to sync. Each `sync` is safe in a thread: it holds its own descriptor or its own copy of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.model.ports import File, Files
from penstock.storage import shared_sync
from penstock.storage.files import DiskFile


class Syncable(Protocol):
    """Something that is durable when `sync` returns."""

    def sync(self) -> None: ...


class Pinned:
    """Bytes of a file on a real disk, by a descriptor that stays open until this is gone."""

    __slots__ = ("file",)

    def __init__(self, file: File) -> None:
        self.file = file

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
    return not isinstance(item, PathSync | TextWrite | DirectorySync)


def sync_together(items: Sequence[Syncable]) -> dict[int, OSError]:
    """Syncs files by as few calls as it takes; returns what failed, by its place in `items`.

    For a thread: it only waits for the disk.
    """
    descriptors = [item.file.fileno() for item in items if isinstance(item, Pinned)]
    on_disk = len(descriptors) == len(items)
    if on_disk and shared_sync.sync_volume_of(descriptors):
        return {}
    if on_disk and len(descriptors) > 1:
        # While the first is waited for the others are written too.
        for descriptor in descriptors:
            shared_sync.start_writing(descriptor)
    failures: dict[int, OSError] = {}
    for place, item in enumerate(items):
        try:
            item.sync()
        except OSError as error:
            failures[place] = error
    return failures
