"""Bytes become lines. Pure: bytes come in as arguments or through a function that looks at a position.

A line that is not complete is not kept but looked at again when there is more: ten thousand files cost no memory.
Neither is one that is too long: its beginning is read again when its end is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias, overload

Look: TypeAlias = Callable[[int, int], bytes]
"""(position, length) → what stands there now; shorter at the end of the file."""


class Positions(Sequence[int]):
    """Where each line begins; counted only when somebody asks. The lines must still be the same then."""

    __slots__ = ("_counted", "_lines", "_start")

    def __init__(self, start: int, lines: list[bytes]) -> None:
        self._start, self._lines = start, lines
        self._counted: list[int] | None = None

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if self._counted is None:
            ends = accumulate(map(len, self._lines), lambda at, size: at + size + 1, initial=self._start)
            self._counted = list(ends)[:-1]
        return self._counted[index]


@dataclass(slots=True)
class Taken:
    """Lines, and the piece of the file that they were."""

    start: int
    end: int
    """Where the next line begins."""
    lines: list[bytes] = field(default_factory=list)
    positions: Sequence[int] = ()
    cut: frozenset[int] = frozenset()
    """Which of them (by index) were too long and are not whole."""
    raw: bytes = b""
    """The last bytes before `end`: at least 256, or the whole piece, or what is at hand of it."""
    scanned: int = 0
    """So many bytes after `end` are known to hold no line break."""
    more: bool = False
    """Whether it was not the end of the file that stopped it."""
    zeros: bool = True
    """Whether those that are known to hold no line break are nothing but zeros."""

    def before_end(self, tail: bytes, read: int) -> bytes:
        """Up to 256 bytes that end at `end`; `tail` are those that ended where it was read to before."""
        if len(self.raw) >= 256 or self.start != read or len(self.raw) != self.end - self.start:
            return self.raw[-256:]
        return (tail + self.raw)[-256:]


def take(
    look: Look, position: int, scanned: int, chunk_bytes: int, line_bytes_max: int, *, zeros: bool = True
) -> Taken:
    """The complete lines from a position on, about `chunk_bytes` of them; maybe none.

    `scanned` and `zeros` are what the last call said. A writer that does not append leaves a hole when its file is
    truncated: zeros are passed over when something stands behind them. With nothing behind them they may be space that
    will be written to, and are waited for.
    """
    if scanned <= chunk_bytes // 4:
        # To read a little twice is cheaper than to join two pieces.
        scanned = 0
    chunk = look(position + scanned, chunk_bytes)
    more = len(chunk) == chunk_bytes
    if (zeros or not scanned) and (scanned or chunk[:1] == b"\0"):
        text = chunk.lstrip(b"\0")
        if not text:
            return Taken(position, position, scanned=scanned + len(chunk), more=more, zeros=True)
        position, scanned, chunk = position + scanned + len(chunk) - len(text), 0, text
    last = chunk.rfind(b"\n")
    if last < 0:
        return Taken(position, position, scanned=scanned + len(chunk), more=more, zeros=not (chunk or scanned))
    end = position + scanned + last + 1
    piece = chunk[:last]
    behind = len(chunk) - last - 1
    if scanned > line_bytes_max:
        # The first line is known to be too long: its beginning is enough.
        first, newline, rest = piece.partition(b"\n")
        head = look(position, line_bytes_max)
        lines = [head, *(rest.split(b"\n") if newline else [])]
        positions = list(
            accumulate(map(len, lines[1:]), lambda at, size: at + size + 1, initial=position + scanned + len(first) + 1)
        )
        taken = Taken(
            position,
            end,
            lines,
            [position, *positions[: len(lines) - 1]],
            frozenset({0}),
            piece[-255:] + b"\n",
            behind,
            more,
        )
    else:
        whole = look(position, scanned) + piece if scanned else piece
        lines = whole.split(b"\n")
        taken = Taken(position, end, lines, Positions(position, lines), frozenset(), whole[-255:] + b"\n", behind, more)
    taken.zeros = not chunk[last + 1 :].strip(b"\0")
    # The first line may begin before the chunk, no other does.
    return shortened(taken, line_bytes_max, carriage_returns=b"\r" in chunk or b"\r" in taken.lines[0])


def take_rest(look: Look, position: int, size: int, line_bytes_max: int) -> Taken:
    """What a finished file holds after its last line break, as a line."""
    length = size - position
    line = look(position, min(length, line_bytes_max)).strip(b"\0")
    if not line:
        return Taken(position, size)
    raw = look(max(0, size - 256), min(256, size))
    cut = frozenset({0}) if length > line_bytes_max else frozenset[int]()
    return Taken(position, size, [line.removesuffix(b"\r")], [position], cut, raw)


def shortened(taken: Taken, line_bytes_max: int, *, carriage_returns: bool) -> Taken:
    """Without what is longer than allowed, and without the carriage returns of line breaks of two bytes."""
    too_long = taken.end - taken.start > line_bytes_max and max(map(len, taken.lines)) > line_bytes_max
    if not (too_long or carriage_returns):
        return taken
    taken.positions = list(taken.positions)
    if too_long:
        long = (index for index, line in enumerate(taken.lines) if len(line) > line_bytes_max)
        taken.cut = taken.cut.union(long)
        taken.lines = [line[:line_bytes_max] for line in taken.lines]
    if carriage_returns:
        taken.lines = [line[:-1] if line[-1:] == b"\r" else line for line in taken.lines]
    return taken


class Splitter:
    """Lines of bytes that come one piece after another and cannot be looked at again. Keeps one line at most."""

    def __init__(self, position: int, line_bytes_max: int) -> None:
        self.position = position
        """Where the next line begins."""
        self._max = line_bytes_max
        self._rest = b""
        self._dropped = 0
        """Bytes of the line that is being read which are not kept, because it is too long."""

    def feed(self, chunk: bytes) -> Taken:
        last = chunk.rfind(b"\n")
        if last < 0:
            self._keep(chunk)
            return Taken(self.position, self.position)
        start, dropped = self.position, self._dropped
        lines = (self._rest + chunk[:last] if self._rest or dropped else chunk[:last]).split(b"\n")
        raw = chunk[max(0, last - 255) : last + 1]
        # What was dropped of the first line stands between its beginning and the rest of it.
        positions: Sequence[int] = Positions(start, lines)
        if dropped:
            positions = [start, *(position + dropped for position in positions[1:])]
        end = start + len(self._rest) + dropped + last + 1
        self.position, self._rest, self._dropped = end, b"", 0
        self._keep(chunk[last + 1 :])
        taken = Taken(start, end, lines, positions, frozenset({0}) if dropped else frozenset(), raw)
        return shortened(taken, self._max, carriage_returns=b"\r" in chunk or b"\r" in lines[0])

    def finish(self) -> Taken:
        """The last line, if it has no line break."""
        start, length = self.position, len(self._rest) + self._dropped
        if not length:
            return Taken(start, start)
        line, cut = self._rest[: self._max], length > self._max
        self.position, self._rest, self._dropped = start + length, b"", 0
        raw = b"" if cut else line[-256:]
        return Taken(
            start, start + length, [line.removesuffix(b"\r")], [start], frozenset({0}) if cut else frozenset(), raw
        )

    def _keep(self, chunk: bytes) -> None:
        room = self._max + 1 - len(self._rest)
        self._rest += chunk[:room]
        self._dropped += max(0, len(chunk) - room)
