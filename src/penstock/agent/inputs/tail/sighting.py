"""Looking at a path: the facts that `identity` decides by. Everything here blocks; compressed files go to a thread."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass
from typing import Final

from penstock.agent.inputs.files.inflating import MAGIC_BYTES, PLAIN, inflate, packing_of, skip
from penstock.agent.inputs.files.lines import Look
from penstock.agent.inputs.tail.descriptors import open_file
from penstock.agent.inputs.tail.identity import PREFIX_BYTES, Sighting
from penstock.agent.inputs.tail.siblings import Elder

FS_IOC_GETVERSION: Final = 0x80087601


@dataclass(slots=True)
class Candidate:
    """A path that is not known to show a known file; kept until it is decided what it shows."""

    path: str
    entry: int
    named: bool
    first_ms: float
    identity: tuple[int, int] = (0, 0)
    size: int = -1
    modified_ns: int = 0
    changed_ms: float = 0.0
    next_ms: float = 0.0
    """When it is worth another look."""
    tries: int = 0
    kin: frozenset[str] = frozenset()
    """The followed paths of known files whose content it may hold, as of the last look."""
    elder: Elder | None = None
    """Set when it was found beside a followed path, not at one."""

    def see(self, found: os.stat_result, now_ms: float) -> None:
        """Remembers what is there, and when it was last seen to change."""
        identity = (found.st_dev, found.st_ino)
        if identity != self.identity:
            self.identity, self.first_ms, self.tries = identity, now_ms, 0
            self.changed_ms = now_ms
        elif (found.st_size, found.st_mtime_ns) != (self.size, self.modified_ns):
            self.changed_ms = now_ms
        self.size, self.modified_ns = found.st_size, found.st_mtime_ns


@dataclass(slots=True)
class Opened:
    """A path that was opened; the descriptor belongs to whoever has this."""

    descriptor: int
    found: os.stat_result
    packing: str

    @property
    def identity(self) -> tuple[int, int]:
        return self.found.st_dev, self.found.st_ino

    @property
    def generation(self) -> int:
        """Tells files apart that have had the same inode, one after the other. 0 where the file system does not say."""
        try:
            return int.from_bytes(fcntl.ioctl(self.descriptor, FS_IOC_GETVERSION, bytes(8)), sys.byteorder)
        except OSError:
            return 0


def open_path(path: str) -> Opened:
    """Raises `OSError`."""
    descriptor = open_file(path)
    try:
        packing = packing_of(os.pread(descriptor, MAGIC_BYTES, 0))
        return Opened(descriptor, os.fstat(descriptor), packing)
    except BaseException:
        os.close(descriptor)
        raise


def sight(opened: Opened, candidate: Candidate, header_bytes: int, now_ms: float) -> Sighting:
    """May raise `CutOff` or `Broken` of a compressed file, and then costs as much as inflating its first KB."""
    packed = opened.packing != PLAIN
    look: Look = _Inflated(opened.descriptor, opened.packing) if packed else _Plain(opened.descriptor)
    return Sighting(
        path=candidate.path,
        device=opened.found.st_dev,
        inode=opened.found.st_ino,
        packing=opened.packing,
        size=None if packed else opened.found.st_size,
        head=look(header_bytes, PREFIX_BYTES),
        look=look,
        quiet_ms=now_ms - candidate.changed_ms,
        age_ms=now_ms - candidate.first_ms,
    )


class _Plain:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, position: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, position)


class _Inflated:
    """Inflates from the beginning for every look: there are few, and one is at the beginning."""

    def __init__(self, descriptor: int, packing: str) -> None:
        self._descriptor, self._packing = descriptor, packing

    def __call__(self, position: int, length: int) -> bytes:
        stream = inflate(self._descriptor, self._packing)
        if position and not skip(stream, position, 1):
            return b""
        pieces = b""
        while len(pieces) < length:
            piece = stream.read(length - len(pieces))
            if not piece:
                break
            pieces += piece
        return pieces
