"""Up to where everything is done. Portions may be done in any order; the safe position stops at the first gap. Pure.

With `exactly_once` a span is *staged* before it is done: its records are in a transaction, and the position that goes
with them into the same transaction is the one behind them (`outlook`). When the transaction is committed the span is
done, and nobody needs to be told what was told already; when it is aborted the span is not staged any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Mark = TypeVar("Mark")


class Span(Generic[Mark]):
    """A piece of a file that is under way. Calling it says that it is done."""

    __slots__ = ("_ledger", "done", "end", "mark", "staged")

    def __init__(self, ledger: Ledger[Mark], end: int, mark: Mark) -> None:
        self._ledger, self.end, self.mark = ledger, end, mark
        self.done = self.staged = False

    def __call__(self) -> None:
        if not self.done:
            self.done = True
            self._ledger.settle()

    def stage(self) -> None:
        """All of it is in a transaction that is about to be committed."""
        self.staged = True
        self._ledger.stage()

    def unstage(self) -> None:
        """The transaction was aborted."""
        self.staged = False


class Ledger(Generic[Mark]):
    """The spans of one file that are under way, in order. A mark is what the file is known by at the end of a span."""

    __slots__ = ("_moved", "_spans", "mark", "safe", "untold")

    def __init__(self, safe: int, mark: Mark, moved: Callable[[], None]) -> None:
        self.safe, self.mark = safe, mark
        self.untold = True
        """Whether the last move is news to whoever writes positions down; what was staged was written before."""
        self._moved = moved
        self._spans: deque[Span[Mark]] = deque()

    @property
    def open_spans(self) -> int:
        return len(self._spans)

    @property
    def end(self) -> int:
        """The end of the last span that was begun."""
        return self._spans[-1].end if self._spans else self.safe

    @property
    def last(self) -> Mark:
        """The mark of the last span that was begun."""
        return self._spans[-1].mark if self._spans else self.mark

    @property
    def outlook(self) -> tuple[int, Mark, bool]:
        """Position and mark behind all that is done or staged, and whether anything is open behind that."""
        safe, mark = self.safe, self.mark
        for span in self._spans:
            if not span.done and not span.staged:
                return safe, mark, True
            safe, mark = span.end, span.mark
        return safe, mark, False

    def begin(self, end: int, mark: Mark) -> Span[Mark]:
        """A span from the last end to this one is under way. What is returned is called when it is done."""
        assert end >= self.end, "spans follow each other"
        span = Span(self, end, mark)
        self._spans.append(span)
        return span

    def stage(self) -> None:
        """Something was staged: there is a position to be written down."""
        self.untold = True
        self._moved()

    def settle(self) -> None:
        """Something is done."""
        spans = self._spans
        if not spans or not spans[0].done:
            return
        self.untold = False
        while spans and spans[0].done:
            first = spans.popleft()
            self.safe, self.mark = first.end, first.mark
            self.untold = self.untold or not first.staged
        self._moved()
