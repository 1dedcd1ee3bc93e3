"""What an append gives and a read returns."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.ids import Offset
from penstock.model.ports import File
from penstock.storage.files import DiskFile


class Ticket(NamedTuple):
    """Offsets [base, end) are assigned to what was appended; it is readable once `written` reaches `end`.

    `timestamp` is the largest one of the batch, so that a duplicate can be answered as the original was.
    """

    base: Offset
    end: Offset
    timestamp: int = -1


class FileSpan:
    """Bytes of a segment that nobody has read yet. While it lives the file cannot go away, even if it is removed."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file.pin() if isinstance(file, DiskFile) else file
        self.position = position
        self.size = size

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        """`size` bytes from `at` on, or all that are left."""
        left = self.size - at
        return self.file.pread(left if size is None else min(size, left), self.position + at)

    def fileno(self) -> int:
        """The descriptor to send from, or -1 for a file in memory."""
        return self.file.fileno()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"FileSpan({self.file.path}, {self.position}+{self.size})"


class Read(NamedTuple):
    """Whole batches, unread. `end` is the offset after them: the next one to ask for."""

    spans: list[FileSpan]
    size: int
    end: Offset
