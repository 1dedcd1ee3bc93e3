"""Open files: as many as are allowed, those that were not used for longest are closed first."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict

from penstock.agent.inputs.tail.identity import Place
from penstock.agent.inputs.tail.tracked import Tracked


class Moved(Exception):
    """The path shows another file now."""


class NotAFile(OSError):
    """A folder, a pipe, a socket or a device."""

    def __init__(self, kind: str) -> None:
        super().__init__(0, f"is {kind}, not a file")


def open_file(path: str) -> int:
    """For reading. Raises `OSError` of any kind, at once: a pipe without a writer does not hold it up."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise NotAFile(_kind(mode))
    return descriptor


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "a socket"


class Descriptors:
    """One for each file that was used lately. A file that no path reaches keeps its own, the only way to it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: OrderedDict[str, Tracked] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def of(self, file: Tracked) -> int:
        """Opens it if need be. Raises `Moved` or `OSError`."""
        if file.descriptor >= 0:
            self._open.move_to_end(file.key)
            return file.descriptor
        if file.place is not Place.HERE:
            raise Moved
        try:
            descriptor = open_file(file.path)
        except FileNotFoundError:
            raise Moved from None
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != file.identity:
            os.close(descriptor)
            raise Moved
        self.give(file, descriptor)
        return descriptor

    def give(self, file: Tracked, descriptor: int) -> None:
        """One that was opened elsewhere; it belongs to the file from now on."""
        self.close(file)
        file.descriptor = descriptor
        self._open[file.key] = file
        if len(self._open) > self._limit:
            self._close_one()

    def close(self, file: Tracked) -> None:
        if file.descriptor >= 0:
            del self._open[file.key]
            os.close(file.descriptor)
            file.descriptor = -1

    def close_all(self) -> None:
        for file in list(self._open.values()):
            self.close(file)

    def _close_one(self) -> None:
        newest = next(reversed(self._open))
        for key, file in self._open.items():
            if file.place is not Place.HELD and key != newest:
                self.close(file)
                return
