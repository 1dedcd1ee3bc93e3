"""Things to sync. Each `sync` is safe in a thread: it holds its own descriptor or its own copy of the bytes."""

from __future__ import annotations

from typing import Protocol

from penstock.model.ports import File, Files
from penstock.storage.files import DiskFile


class Syncable(Protocol):
    """Something that is durable when `sync` returns."""

    def sync(self) -> None: ...


def pinned(file: File) -> Syncable:
    """The file as it is now, whatever it is called when the sync runs."""
    return file.pin() if isinstance(file, DiskFile) else file


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
