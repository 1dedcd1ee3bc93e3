"""Syslog messages out of a TCP stream, RFC 6587. Pure: bytes in, messages out, bounded.

Two framings are in use and nobody says which: `83 <34>1 …` counts octets, anything else ends with a line feed. Which it
is is looked at anew for each message, so a sender that counts wrong is in step again after its next line break.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.agent.inputs.lines import CUT_BYTES_MIN, UNBOUNDED, Framed

_COUNT: Final = re.compile(rb"([1-9]\d{0,8}) <")
_MAYBE_COUNT: Final = re.compile(rb"[1-9]\d{0,8} ?")
_GAP: Final = re.compile(rb"[\r\n\0]+")
_BETWEEN: Final = b"\r\n\0"


class SyslogFraming:
    """A message over `message_bytes_max` is cut there and its rest skipped."""

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._held = bytearray()
        self._looked_at = 0
        """Up to where the held line was searched for its end; a byte at a time must not cost its square."""
        self._skip_bytes = 0
        self._skip_line = False

    @property
    def held_bytes(self) -> int:
        return len(self._held)

    def feed(self, data: bytes, room_bytes: int = UNBOUNDED) -> Framed:
        limit = min(self._message_bytes_max, max(len(self._held) + room_bytes, CUT_BYTES_MIN))
        self._held += data
        framed = Framed()
        at = 0
        while (after := self._next(at, limit, framed)) is not None:
            at = after
        if at:
            del self._held[:at]
            self._looked_at = max(0, self._looked_at - at)
        return framed

    def end(self) -> Framed:
        framed = Framed()
        rest = bytes(self._held).strip(_BETWEEN)
        self._held.clear()
        if rest and not self._skip_line and not self._skip_bytes:
            counted = _COUNT.match(rest)
            if counted is not None:
                # It announced more than came.
                rest = rest[counted.end() - 1 :]
                framed.cut.append(0)
            framed.messages.append(rest)
        self._skip_line, self._skip_bytes, self._looked_at = False, 0, 0
        return framed

    def _next(self, at: int, limit: int, framed: Framed) -> int | None:
        """Takes one message that begins at `at`; gives the place behind it, None when more bytes are needed."""
        held, size = self._held, len(self._held)
        if at >= size:
            return None
        if self._skip_bytes:
            skipped = min(self._skip_bytes, size - at)
            self._skip_bytes -= skipped
            return at + skipped
        if self._skip_line:
            end = held.find(b"\n", at)
            self._skip_line = end < 0
            return size if end < 0 else end + 1
        gap = _GAP.match(held, at)
        if gap is not None:
            return gap.end()
        counted = _COUNT.match(held, at)
        if counted is not None:
            return self._counted(counted.end() - 1, int(counted[1]), limit, framed)
        maybe = _MAYBE_COUNT.match(held, at)
        if maybe is not None and maybe.end() == size:
            return None
        return self._line(at, limit, framed)

    def _counted(self, begin: int, count: int, limit: int, framed: Framed) -> int | None:
        here = len(self._held) - begin
        if here >= count and count <= self._message_bytes_max:
            framed.messages.append(bytes(self._held[begin : begin + count]).rstrip(_BETWEEN))
            return begin + count
        if here < limit:
            return None
        framed.cut.append(len(framed.messages))
        framed.messages.append(bytes(self._held[begin : begin + min(limit, count)]))
        self._skip_bytes = max(0, count - here)
        return begin + min(here, count)

    def _line(self, at: int, limit: int, framed: Framed) -> int | None:
        held = self._held
        end = held.find(b"\n", max(at, self._looked_at))
        if end < 0:
            self._looked_at = len(held)
            if len(held) - at <= limit:
                return None
            framed.cut.append(len(framed.messages))
            framed.messages.append(bytes(held[at : at + limit]))
            self._skip_line = True
            return len(held)
        line = bytes(held[at:end]).rstrip(_BETWEEN)
        if len(line) > self._message_bytes_max:
            framed.cut.append(len(framed.messages))
            line = line[: self._message_bytes_max]
        framed.messages.append(line)
        return end + 1
