"""Reading a compressed file: inflated in a thread, one piece at a time, from where it was left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator

from penstock.agent.inputs.files.inflating import Stream, inflate, skip
from penstock.agent.inputs.files.lines import Splitter, Taken
from penstock.agent.inputs.tail.followed import Followed
from penstock.agent.inputs.tail.identity import ANCHOR_BYTES, anchor_at
from penstock.agent.inputs.tail.reading import NEVER, Load, load_of
from penstock.agent.inputs.tail.tracked import Tracked
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, TRUNCATED


class Overwritten(Exception):
    """It does not hold what was read of it before."""


class Unpacker:
    """Reads one compressed file after another, each to its end. Positions are those of the inflated bytes."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._settings = followed.settings

    async def read(self, file: Tracked) -> AsyncGenerator[Load, None]:
        """To its end. Raises `Overwritten`, `CutOff`, `Broken`, `OSError`; what was yielded before stays true."""
        # A descriptor of its own: those of files are closed when too many are open.
        descriptor = os.dup(self._followed.descriptors.of(file))
        try:
            stream = inflate(descriptor, file.packing)
            await self._go_to_position(file, stream)
            splitter = Splitter(file.read, self._settings.line_bytes_max)
            window = _Window(file.read)
            while chunk := await asyncio.to_thread(_read_full, stream, self._settings.read_bytes):
                window.add(chunk)
                load = self._accept(file, splitter.feed(chunk), window)
                if load is not None:
                    yield load
            load = self._accept(file, splitter.finish(), window)
            if load is not None:
                yield load
            load = self._kept(file)
            if load is not None:
                yield load
        finally:
            os.close(descriptor)

    async def _go_to_position(self, file: Tracked, stream: Stream) -> None:
        file.rewind(file.ledger.end, None)
        if not file.read:
            return
        file.tail = await asyncio.to_thread(skip, stream, file.read, ANCHOR_BYTES)
        anchor = file.anchors[-1] if file.anchors else None
        if not file.tail or (anchor is not None and not anchor.print.matches(file.tail[-anchor.print.length :])):
            raise Overwritten

    def _accept(self, file: Tracked, taken: Taken, window: _Window) -> Load | None:
        if taken.end == taken.start:
            return None
        file.read = taken.end
        file.tail = window.before(taken.end)
        if file.gatherer is None:
            marks = dict.fromkeys(taken.cut, TRUNCATED) if taken.cut else {}
            size_bytes = sum(map(len, taken.lines)) + EVENT_OVERHEAD_BYTES * len(taken.lines)
            return Load(taken.lines, taken.positions, taken.end, anchor_at(taken.end, file.tail), marks, size_bytes)
        now_ms = self._followed.now_ms()
        events = file.gatherer.feed(taken.lines, taken.positions, taken.end, now_ms, taken.cut or NEVER)
        return load_of(events, anchor_at(events[-1].end, window.before(events[-1].end))) if events else None

    def _kept(self, file: Tracked) -> Load | None:
        kept = file.gatherer.flush() if file.gatherer is not None else None
        return None if kept is None else load_of([kept], anchor_at(kept.end, file.tail))


class _Window:
    """The last two pieces, to see what stands before a position in them."""

    def __init__(self, position: int) -> None:
        self._end = position
        self._last, self._newest = b"", b""

    def add(self, chunk: bytes) -> None:
        self._last, self._newest = self._newest, chunk
        self._end += len(chunk)

    def before(self, position: int) -> bytes:
        """As many bytes as an anchor wants; fewer near the edge of what is kept."""
        begin = self._end - len(self._newest)
        if position - begin >= ANCHOR_BYTES:
            return self._newest[position - begin - ANCHOR_BYTES : position - begin]
        both = self._last + self._newest
        at = position - (self._end - len(both))
        return both[max(0, at - ANCHOR_BYTES) : max(0, at)]


def _read_full(stream: Stream, length: int) -> bytes:
    """About so many bytes; a stream gives small pieces."""
    pieces, size = [], 0
    while size < length and (piece := stream.read(length - size)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)
