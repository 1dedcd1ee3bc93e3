"""Removing what a log has left behind, off the loop and file by file."""

from __future__ import annotations

from contextlib import suppress

from penstock.model.ports import Files


class TreeRemoval:
    """A directory to remove with all its files; for a thread.

    `path` is what is being removed, read from other threads: thousands of large segments that take minutes are no disk
    that hangs.
    """

    __slots__ = ("_directory", "_files", "path")

    def __init__(self, files: Files, directory: str) -> None:
        self._files, self._directory = files, directory
        self.path = directory

    def __call__(self) -> None:
        for name in self._files.listdir(self._directory):
            self.path = f"{self._directory}/{name}"
            # A directory in here is none of ours, and goes with the rest.
            with suppress(FileNotFoundError, IsADirectoryError):
                self._files.remove(self.path)
        self.path = self._directory
        self._files.rmtree(self._directory)
