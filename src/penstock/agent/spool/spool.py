"""The spool of an agent: a queue on disk for each input, under one cap."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from penstock.agent.errors import SpoolFailed, SpoolFull
from penstock.agent.spool import segments
from penstock.agent.spool.frames import Load, pack
from penstock.agent.spool.segments import SUFFIX, Segment
from penstock.declared.amounts import size_text

SEGMENT_BYTES: Final = 4 << 20
SEGMENTS_OF_CAP: Final = 8
"""A small cap has small files, so that its space is given back in small parts too."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Result = TypeVar("Result")


class Spool:
    """Everything is called on the loop; the disk's work is done by a thread, one thing after the other."""

    def __init__(self, folder: Path, cap_bytes: int, tell: Callable[[str], None]) -> None:
        self.folder, self.cap_bytes = folder, cap_bytes
        self._tell = tell
        self.used_bytes = 0
        self._queues: dict[str, SpoolQueue] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spool")

    async def open(self) -> None:
        """Finds what an earlier life left. SpoolFailed when the folder cannot be used."""
        found = await self.do(self._find)
        for name, left in found.items():
            queue = self._queues[name] = SpoolQueue(self, self.folder / name)
            queue.restore(left)
        self.used_bytes = sum(segment.bytes for left in found.values() for segment in left)

    def _find(self) -> dict[str, list[Segment]]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found: dict[str, list[Segment]] = {}
        for folder in sorted(each for each in self.folder.iterdir() if each.is_dir()):
            left = [segments.recover(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
            for empty in (segment for segment in left if not segment.bytes):
                empty.path.unlink(missing_ok=True)
            held = [segment for segment in left if segment.bytes]
            if held:
                found[folder.name] = held
        return found

    @property
    def names(self) -> list[str]:
        """The inputs that something is kept for."""
        return [name for name, queue in self._queues.items() if queue.unread]

    def queue(self, name: str) -> SpoolQueue:
        """Of one input."""
        if name not in self._queues:
            self._queues[name] = SpoolQueue(self, self.folder / name)
        return self._queues[name]

    @property
    def segment_bytes(self) -> int:
        return min(SEGMENT_BYTES, self.cap_bytes // SEGMENTS_OF_CAP)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    def told(self, words: str) -> None:
        self._tell(words)

    async def do(self, work: Callable[[], Result]) -> Result:
        """Something on the disk. SpoolFull, SpoolFailed."""
        task = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            # What the thread has begun ends in any case; a caller that goes must not make it look undone.
            return await asyncio.shield(task)
        except OSError as wrong:
            if wrong.errno in _FULL:
                raise SpoolFull(f"the disk of {self.folder} is full ({wrong.strerror}): make room there") from wrong
            raise SpoolFailed(f"the spool {self.folder} cannot be used: {wrong}") from wrong


class SpoolQueue:
    """The queue of one input."""

    def __init__(self, spool: Spool, folder: Path) -> None:
        self._spool, self._folder = spool, folder
        self._segments: deque[Segment] = deque()
        self._last_number = 0
        self.lost_records = 0
        """Damaged on the disk, and told."""

    def restore(self, found: list[Segment]) -> None:
        self._segments.extend(found)
        self._last_number = max(int(segment.path.stem) for segment in found)

    @property
    def unread(self) -> bool:
        """Whether something is there that `read` was not asked for."""
        return any(segment.unread for segment in self._segments)

    async def append(self, loads: list[Load], *, held: bool = False) -> Segment:
        """Safe on the disk when it returns. SpoolFull and SpoolFailed leave everything as it was.

        `held` loads are on their way to brokers already: they are kept for the case that this process dies, and not
        given back by `read`. Free the segment once for each call.
        """
        frame = await self._spool.do(lambda: pack(loads))
        if self._spool.used_bytes + len(frame) > self._spool.cap_bytes:
            raise SpoolFull(f"the spool {self._spool.folder} has reached its size, {size_text(self._spool.cap_bytes)}")
        segment = self._writable(held)
        # Counted first: two inputs that write at once must not pass the cap together.
        self._spool.used_bytes += len(frame)
        segment.writing = True
        try:
            await self._spool.do(lambda: self._write(segment, frame))
        except BaseException:
            self._spool.used_bytes -= len(frame)
            if not segment.bytes:
                self._segments.remove(segment)
            raise
        finally:
            segment.writing = False
        # Here and not in the thread: a reader must not see a held frame before it is marked as one.
        segment.bytes += len(frame)
        if held:
            segment.read_bytes, segment.sealed = segment.bytes, True
            segment.held_frames += 1
        elif segment.bytes >= self._spool.segment_bytes:
            segment.sealed = True
        return segment

    def _write(self, segment: Segment, frame: bytes) -> None:
        if not self._folder.exists():
            self._folder.mkdir(mode=0o700)
            segments.sync_folder(self._folder.parent)
        segments.append(segment, frame)

    def _writable(self, fresh: bool) -> Segment:
        last = self._segments[-1] if self._segments else None
        if last is None or last.sealed or fresh:
            if last is not None:
                last.sealed = True
            self._last_number += 1
            last = Segment(self._folder / f"{self._last_number:012d}{SUFFIX}")
            self._segments.append(last)
        return last

    async def read(self) -> tuple[list[Load], Segment, int] | None:
        """The next loads, in order, with the segment and the number of frames to `free` when they are safe."""
        segment = next((each for each in self._segments if each.unread), None)
        if segment is None:
            return None
        chunk = await self._spool.do(lambda: segments.read(segment))
        segment.read_bytes = chunk.end
        segment.held_frames += chunk.frames
        if chunk.damage:
            await self._damaged(segment, chunk.damage, chunk.lost_records)
        return chunk.loads, segment, chunk.frames

    async def _damaged(self, segment: Segment, words: str, records: int) -> None:
        self.lost_records += records
        kept = await self._spool.do(lambda: segments.set_aside(segment.path))
        self._spool.told(
            f"{segment.path}: {words}; {records or 'some'} records are lost, the rest goes on. The file is kept as"
            f" {kept.name}"
        )

    async def free(self, segment: Segment, frames: int = 1) -> None:
        """So many frames of a segment are acknowledged. A file of which nothing is needed goes at once."""
        segment.held_frames -= frames
        assert segment.held_frames >= 0, "frames are freed once"
        if segment.finished and segment in self._segments:
            self._segments.remove(segment)
            await self._spool.do(lambda: segment.path.unlink(missing_ok=True))
            self._spool.used_bytes -= segment.bytes
