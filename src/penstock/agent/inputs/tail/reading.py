"""A turn of one file: some of its bytes become a portion, if they are still the bytes of that file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.agent.inputs.files.inflating import PLAIN, packing_of
from penstock.agent.inputs.files.lines import Look, Taken, take, take_rest
from penstock.agent.inputs.tail.followed import Followed, look_through
from penstock.agent.inputs.tail.identity import ANCHOR_BYTES, PREFIX_BYTES, Anchor, Place, anchor_at
from penstock.agent.inputs.tail.tracked import Tracked
from penstock.agent.multiline import Event
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, TRUNCATED

NEVER: Final = frozenset[int]()


@dataclass(slots=True)
class Load:
    """Events of one file, ready to be put, and how far they go."""

    values: list[bytes]
    positions: Sequence[int]
    end: int
    anchor: Anchor
    marks: dict[int, str] = field(default_factory=dict)
    size_bytes: int = 0


@dataclass(slots=True)
class Turn:
    """What a turn gave."""

    load: Load | None = None
    more: bool = False
    """There was more than fits into a turn."""
    replaced: bool = False
    """The file is not what it was; nothing was taken from it."""


class Reader:
    """Reads files that are not compressed. Moves their positions; what it returns must be put, or is lost."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._settings = followed.settings

    def read(self, file: Tracked) -> Turn:
        """Raises `OSError` and `Moved`."""
        descriptor = self._followed.descriptors.of(file)
        look = look_through(descriptor)
        found = os.fstat(descriptor)
        if found.st_size < file.read:
            return Turn(replaced=True)
        limits = self._settings.read_bytes, self._settings.line_bytes_max
        taken = take(look, file.read, file.scanned, *limits, zeros=file.zeros)
        head = self._head_if_same(file, look)
        if head is None:
            return Turn(replaced=True)
        file.suspicious = False
        if file.horizon_ns and file.settled and file.place is Place.HERE and file.path == file.origin_path:
            # It was still whole after that time, so whatever takes its place is not older.
            file.horizon_ns = max(file.horizon_ns, found.st_mtime_ns)
        load = self._accept(file, taken, look)
        if head:
            self._followed.grow_prefix(file, head)
        return Turn(load, more=taken.more)

    def read_rest(self, file: Tracked) -> Turn:
        """What a file that will not grow any more holds after its last line break."""
        descriptor = self._followed.descriptors.of(file)
        look = look_through(descriptor)
        size = os.fstat(descriptor).st_size
        if size < file.read:
            return Turn(replaced=True)
        taken = take_rest(look, file.read, size, self._settings.line_bytes_max)
        head = self._head_if_same(file, look)
        if head is None:
            return Turn(replaced=True)
        load = self._accept(file, taken, look)
        return Turn(self._with_kept(file, load))

    def flush(self, file: Tracked) -> Load | None:
        """The event that waited for more lines, and waited long enough."""
        return self._with_kept(file, None)

    def _head_if_same(self, file: Tracked, look: Look) -> bytes | None:
        """None when the file is another one; the beginning when that was worth a look. Asked after reading: what
        was read before a truncation is true, what was read after it shows here."""
        tail = file.tail
        if tail and look(file.read - len(tail), len(tail)) != tail:
            return None
        if not file.suspicious and file.prefix.length == PREFIX_BYTES:
            return b""
        head = look(self._settings.ignored_header_bytes, PREFIX_BYTES)
        if not file.prefix.matches(head):
            return None
        if not file.read and packing_of(look(0, 4)) != PLAIN:
            # It was empty when it was found.
            return None
        return head

    def _accept(self, file: Tracked, taken: Taken, look: Look) -> Load | None:
        start = file.read
        file.read, file.scanned, file.zeros = taken.end, taken.scanned, taken.zeros
        if taken.end == start:
            return None
        file.tail = taken.before_end(file.tail, start)
        if not taken.lines:
            # Zeros at the end of a finished file.
            return None
        if file.gatherer is not None:
            return self._gather(file, taken, look)
        marks = dict.fromkeys(taken.cut, TRUNCATED) if taken.cut else {}
        size_bytes = taken.end - taken.start + EVENT_OVERHEAD_BYTES * len(taken.lines)
        return Load(taken.lines, taken.positions, taken.end, anchor_at(taken.end, file.tail), marks, size_bytes)

    def _gather(self, file: Tracked, taken: Taken, look: Look) -> Load | None:
        assert file.gatherer is not None, "called for files that have one"
        now_ms = self._followed.now_ms()
        events = file.gatherer.feed(taken.lines, taken.positions, taken.end, now_ms, taken.cut or NEVER)
        if not events:
            return None
        end = events[-1].end
        length = min(ANCHOR_BYTES, end)
        before = file.tail if end == taken.end else look(end - length, length)
        return load_of(events, anchor_at(end, before))

    def _with_kept(self, file: Tracked, load: Load | None) -> Load | None:
        """And what the gatherer kept for lines that do not come."""
        kept = file.gatherer.flush() if file.gatherer is not None else None
        if kept is None:
            return load
        last = load_of([kept], anchor_at(kept.end, file.tail))
        if load is None:
            return last
        marks = load.marks | {len(load.values) + index: mark for index, mark in last.marks.items()}
        return Load([*load.values, *last.values], [*load.positions, *last.positions], last.end, last.anchor, marks)


def load_of(events: list[Event], anchor: Anchor) -> Load:
    marks = {index: TRUNCATED for index, event in enumerate(events) if event.marked}
    return Load([event.value for event in events], [event.start for event in events], events[-1].end, anchor, marks)
