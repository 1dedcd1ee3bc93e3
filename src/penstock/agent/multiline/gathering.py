"""The event of a file that may still go on. Pure: the time comes in with the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.agent.multiline.rules import Rule


@dataclass(frozen=True, slots=True)
class Event:
    """Lines that belong together, joined by line breaks, and where they were."""

    value: bytes
    start: int
    end: int
    """Where the next line begins."""
    marked: bool = False
    """Whether one of its lines was cut."""


@dataclass(slots=True)
class _Open:
    lines: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    start: int = 0
    end: int = 0
    marked: bool = False

    def add(self, line: bytes, end: int, *, marked: bool) -> None:
        self.lines.append(line)
        self.size_bytes += len(line) + 1
        self.end = end
        self.marked |= marked

    def event(self) -> Event:
        return Event(b"\n".join(self.lines), self.start, self.end, self.marked)


class Gatherer:
    """Lines in, events out; at most `lines_max` lines or `bytes_max` bytes are kept."""

    def __init__(self, rule: Rule, timeout_ms: float, lines_max: int, bytes_max: int) -> None:
        self._rule = rule
        self._timeout_ms, self._lines_max, self._bytes_max = timeout_ms, lines_max, bytes_max
        self._open: _Open | None = None
        self._last_ms = 0.0

    @property
    def kept_from(self) -> int | None:
        """Where the event begins that is not handed on yet; None when there is none."""
        return self._open.start if self._open else None

    @property
    def due_ms(self) -> float | None:
        """When the event that is kept has waited long enough."""
        return self._last_ms + self._timeout_ms if self._open else None

    def feed(
        self, lines: Sequence[bytes], starts: Sequence[int], end: int, now_ms: float, cut: frozenset[int] = frozenset()
    ) -> list[Event]:
        """Lines with where each begins, `end` where the next one will, and which of them (by index) were cut."""
        events: list[Event] = []
        for index, line in enumerate(lines):
            line_end = starts[index + 1] if index + 1 < len(starts) else end
            if self._open is not None and not (self._rule.joins(line) and self._fits(line)):
                events.append(self._open.event())
                self._open = None
            elif self._open is None:
                self._rule.joins(line)
            if self._open is None:
                self._open = _Open(start=starts[index])
            self._open.add(line, line_end, marked=index in cut)
            if self._rule.complete():
                events.append(self._open.event())
                self._open = None
        if lines:
            self._last_ms = now_ms
        return events

    def flush(self) -> Event | None:
        """What is kept goes on as it is."""
        if self._open is None:
            return None
        event = self._open.event()
        self._open = None
        self._rule.reset()
        return event

    def drop(self) -> None:
        """What is kept is no longer true: the file is another one now."""
        self._open = None
        self._rule.reset()

    def _fits(self, line: bytes) -> bool:
        kept = self._open
        return kept is None or (len(kept.lines) < self._lines_max and kept.size_bytes + len(line) <= self._bytes_max)
