"""One file from its beginning, or from where it was left, to its end: pieces of lines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from penstock.agent.inputs.files.inflating import MAGIC_BYTES, PLAIN, Broken, Stream, inflate, packing_of, skip
from penstock.agent.inputs.files.lines import Splitter, Taken
from penstock.agent.inputs.spooldir.searching import Facts
from penstock.agent.inputs.spooldir.settings import SpoolDirSettings
from penstock.agent.multiline import Event
from penstock.agent.portion import TRUNCATED


class Changed(Exception):
    """It is not what it was when it was begun."""


@dataclass(slots=True)
class Piece:
    """Events, and where the one after them begins."""

    values: list[bytes]
    positions: list[int]
    end: int
    marks: dict[int, str] = field(default_factory=dict)


class _Plain:
    def __init__(self, descriptor: int, position: int) -> None:
        self._descriptor, self._at = descriptor, position

    def read(self, length: int) -> bytes:
        piece = os.pread(self._descriptor, length, self._at)
        self._at += len(piece)
        return piece


async def take_file(
    path: str, facts: Facts, position: int, settings: SpoolDirSettings, now_ms: float
) -> AsyncGenerator[Piece, None]:
    """Raises `Changed`, `CutOff`, `Broken` and `OSError`; what was yielded before that was in the file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        packing = packing_of(os.pread(descriptor, MAGIC_BYTES, 0))
        stream: Stream = _Plain(descriptor, position) if packing == PLAIN else inflate(descriptor, packing)
        if packing != PLAIN and position and not await asyncio.to_thread(skip, stream, position, 1):
            raise Broken("is shorter than what was read of it before")
        splitter = Splitter(position, settings.line_bytes_max)
        gatherer = settings.multiline.gatherer() if settings.multiline is not None else None
        ended = False
        while not ended:
            chunk = await asyncio.to_thread(_read_full, stream, settings.read_bytes)
            # Asked after reading: what was read before it changed is true.
            _check(path, descriptor, facts)
            ended = not chunk
            taken = splitter.finish() if ended else splitter.feed(chunk)
            if gatherer is None:
                if taken.lines:
                    yield _piece(taken)
                continue
            events = gatherer.feed(taken.lines, taken.positions, taken.end, now_ms, taken.cut)
            last = gatherer.flush() if ended else None
            if last is not None:
                events.append(last)
            if events:
                yield _piece_of_events(events)
    finally:
        os.close(descriptor)


def _check(path: str, descriptor: int, facts: Facts) -> None:
    if Facts.of(os.fstat(descriptor)) != facts:
        raise Changed
    try:
        shown = os.stat(path)
    except FileNotFoundError:
        # Taken away by somebody; what was in it is still read.
        return
    if (shown.st_dev, shown.st_ino) != (facts.device, facts.inode):
        raise Changed


def _read_full(stream: Stream, length: int) -> bytes:
    pieces, size = [], 0
    while size < length and (piece := stream.read(length - size)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def _piece(taken: Taken) -> Piece:
    return Piece(taken.lines, list(taken.positions), taken.end, dict.fromkeys(taken.cut, TRUNCATED))


def _piece_of_events(events: list[Event]) -> Piece:
    marks = {index: TRUNCATED for index, event in enumerate(events) if event.marked}
    return Piece([event.value for event in events], [event.start for event in events], events[-1].end, marks)
