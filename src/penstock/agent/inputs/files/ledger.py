"""Up to where everything is done. Portions may be done in any order; the safe position stops at the first gap. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Mark = TypeVar("Mark")


@dataclass(slots=True)
class _Span(Generic[Mark]):
    end: int
    mark: Mark
    done: bool = False


class Ledger(Generic[Mark]):
    """The spans of one file that are under way, in order. A mark is what the file is known by at the end of a span."""

    __slots__ = ("_moved", "_spans", "mark", "safe")

    def __init__(self, safe: int, mark: Mark, moved: Callable[[], None]) -> None:
        self.safe, self.mark = safe, mark
        self._moved = moved
        self._spans: deque[_Span[Mark]] = deque()

    @property
    def open_spans(self) -> int:
        return len(self._spans)

    @property
    def end(self) -> int:
        """The end of the last span that was begun."""
        return self._spans[-1].end if self._spans else self.safe

    def begin(self, end: int, mark: Mark) -> Callable[[], None]:
        """A span from the last end to this one is under way. What is returned is called when it is done."""
        assert end >= self.end, "spans follow each other"
        span = _Span(end, mark)
        self._spans.append(span)

        def done() -> None:
            if not span.done:
                span.done = True
                self._settle()

        return done

    def _settle(self) -> None:
        spans = self._spans
        if not spans or not spans[0].done:
            return
        while spans and spans[0].done:
            first = spans.popleft()
            self.safe, self.mark = first.end, first.mark
        self._moved()
