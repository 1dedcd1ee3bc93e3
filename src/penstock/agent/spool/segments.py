"""Files of frames, and the one thread's work on them. Synchronous; everything may raise OSError."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from penstock.agent.spool.frames import HEAD_BYTES, MARK, BadFrame, Load, read_head, unpack

SUFFIX: Final = ".frames"
BROKEN_SUFFIX: Final = ".broken"
BROKEN_MAX: Final = 4
READ_BYTES: Final = 256 << 10
"""Of packed frames; what is in them is several times as much."""


@dataclass(slots=True, eq=False)
class Segment:
    """One file. `read_bytes` is how far it was read."""

    path: Path
    bytes: int = 0
    """How much of the file counts: behind it there may be the rest of a write that failed."""
    read_bytes: int = 0
    held_frames: int = 0
    """Read, and not yet acknowledged."""
    sealed: bool = False
    """Takes no more frames."""
    writing: bool = False

    @property
    def unread(self) -> bool:
        return self.read_bytes < self.bytes

    @property
    def finished(self) -> bool:
        return not (self.unread or self.held_frames or self.writing)


@dataclass(slots=True)
class Chunk:
    """What one reading brought."""

    loads: list[Load]
    frames: int
    end: int
    """Where the next reading begins."""
    damage: str = ""
    """What could not be read, in words."""
    lost_records: int = 0


def append(segment: Segment, frame: bytes) -> None:
    """Writes a frame behind what counts, and waits for the disk. That it counts too is for the caller to say."""
    is_new = not segment.bytes
    descriptor = os.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            view, at = memoryview(frame), segment.bytes
            while view:
                written = os.pwrite(descriptor, view, at)
                view, at = view[written:], at + written
            os.fdatasync(descriptor)
        except OSError:
            # Whatever stays behind it would otherwise be read as a frame, or hold space that is not counted.
            os.ftruncate(descriptor, segment.bytes)
            raise
    finally:
        os.close(descriptor)
    if is_new:
        sync_folder(segment.path.parent)


def read(segment: Segment, limit_bytes: int = READ_BYTES) -> Chunk:
    """Frames from `read_bytes` on: at least one, then as many as fit into the limit. The segment stays as it is."""
    chunk = Chunk([], 0, segment.read_bytes)
    with segment.path.open("rb") as file:
        while chunk.end < segment.bytes:
            file.seek(chunk.end)
            records = 0
            try:
                head = read_head(file.read(HEAD_BYTES))
                if chunk.frames and chunk.end + head.frame_bytes - segment.read_bytes > limit_bytes:
                    break
                records = head.records
                loads = unpack(head, file.read(head.body_bytes))
            except BadFrame as broken:
                # Its length may be what is wrong with it: only a mark can be trusted.
                chunk.damage, chunk.lost_records = str(broken), chunk.lost_records + records
                chunk.end = _next_mark(file, chunk.end + 1, segment.bytes)
                continue
            chunk.loads += loads
            chunk.frames += 1
            chunk.end += head.frame_bytes
    return chunk


def _next_mark(file: BinaryIO, begin: int, end: int) -> int:
    """Where the next frame may begin; `end` when none does."""
    file.seek(begin)
    found = file.read(end - begin).find(MARK)
    return end if found < 0 else begin + found


def recover(path: Path) -> Segment:
    """What a file from an earlier life holds; a torn end, which nobody was promised, is cut off."""
    size = path.stat().st_size
    at = 0
    with path.open("rb") as file:
        while at < size:
            file.seek(at)
            try:
                end = at + read_head(file.read(HEAD_BYTES)).frame_bytes
            except BadFrame:
                end = size + 1
            if end > size:
                # Torn, unless more follows: then it is damaged, and `read` says so when it comes there.
                end = _next_mark(file, at + 1, size)
                if end == size:
                    break
            at = end
    if at < size:
        os.truncate(path, at)
    return Segment(path, bytes=at, sealed=True)


def set_aside(path: Path) -> Path:
    """Keeps a damaged file for those who want to look at it, and the last few of its kind."""
    kept = path.with_suffix(BROKEN_SUFFIX)
    kept.unlink(missing_ok=True)
    os.link(path, kept)
    for old in sorted(path.parent.glob(f"*{BROKEN_SUFFIX}"))[:-BROKEN_MAX]:
        old.unlink(missing_ok=True)
    return kept


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
