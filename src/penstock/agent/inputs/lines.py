"""Lines out of a stream of bytes that may never contain a line break. Pure: bytes in, lines out, bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

UNBOUNDED: Final = 1 << 62
CUT_BYTES_MIN: Final = 1 << 10
"""However little room there is, so much of a line may be held."""

# Senders of single bytes would otherwise cost fifty times what they send.
_PARTS_MAX: Final = 256


@dataclass(slots=True)
class Framed:
    """Whole messages. `cut` has the indexes of those that lost their end."""

    messages: list[bytes] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)


class Framing(Protocol):
    """Makes messages of what comes over one connection."""

    @property
    def held_bytes(self) -> int:
        """Of a message whose end has not come."""

    def feed(self, data: bytes, room_bytes: int = UNBOUNDED) -> Framed:
        """What is complete now. Of what is not, no more is held than was before and `room_bytes` besides."""

    def end(self) -> Framed:
        """There will be no more: what is held."""


class LineFraming:
    """Lines end with a line feed, before which a carriage return may stand; the last one may lack both.

    A line over `line_bytes_max` is cut there, given out at once, and its rest skipped.
    """

    def __init__(self, line_bytes_max: int, *, keep_empty: bool = True) -> None:
        self._line_bytes_max, self._keep_empty = line_bytes_max, keep_empty
        self._parts: list[bytes] = []
        self._skipping = False
        self.held_bytes = 0

    def feed(self, data: bytes, room_bytes: int = UNBOUNDED) -> Framed:
        lines = data.split(b"\n")
        rest = lines.pop()
        framed = Framed(lines)
        if lines:
            self._join_first(framed)
            self._polish(framed)
        self._hold(rest, framed, room_bytes)
        return framed

    def end(self) -> Framed:
        framed = Framed()
        if self.held_bytes:
            framed.messages.append(self._taken())
            self._polish(framed)
        self._skipping = False
        return framed

    def _join_first(self, framed: Framed) -> None:
        """The first line break ends what is held, or what was skipped."""
        lines = framed.messages
        if self._skipping:
            del lines[0]
            self._skipping = False
        elif self._parts:
            self._parts.append(lines[0])
            lines[0] = self._taken()

    def _polish(self, framed: Framed) -> None:
        lines, limit = framed.messages, self._line_bytes_max
        if any(line.endswith(b"\r") for line in lines):
            lines[:] = [line[:-1] if line.endswith(b"\r") else line for line in lines]
        if not self._keep_empty and b"" in lines:
            lines[:] = [line for line in lines if line]
        if lines and max(map(len, lines)) > limit:
            framed.cut.extend(at for at, line in enumerate(lines) if len(line) > limit)
            lines[:] = [line[:limit] for line in lines]

    def _hold(self, rest: bytes, framed: Framed, room_bytes: int) -> None:
        if not rest or self._skipping:
            return
        # One byte beyond the limit may turn out to be the carriage return of a line that fits.
        limit = min(self._line_bytes_max + 1, max(self.held_bytes + room_bytes, CUT_BYTES_MIN))
        self._parts.append(rest)
        self.held_bytes += len(rest)
        if self.held_bytes > limit:
            framed.cut.append(len(framed.messages))
            framed.messages.append(self._taken()[: min(limit, self._line_bytes_max)])
            self._skipping = True
        elif len(self._parts) > _PARTS_MAX:
            self._parts = [b"".join(self._parts)]

    def _taken(self) -> bytes:
        taken, self._parts, self.held_bytes = b"".join(self._parts), [], 0
        return taken
