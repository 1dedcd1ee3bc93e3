"""What is wrong with a pipeline file: every mistake with its place and, where one can guess, what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.spark.errors import SparkRoomError


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One thing to mend. `line` and `column` count from 1; 0 means the file as a whole."""

    line: int
    column: int
    words: str

    def at(self, file: str) -> str:
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.words}"


class FlowBroken(SparkRoomError):
    """A pipeline file that cannot be run; `mistakes` has all that was found, in the order of the file."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(mistake.at(file) for mistake in mistakes))
        self.file, self.mistakes = file, tuple(mistakes)

    def __reduce__(self) -> tuple[type[FlowBroken], tuple[str, tuple[Mistake, ...]]]:
        return FlowBroken, (self.file, self.mistakes)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or which there are when nothing is near; empty when there are none."""
    choices = list(known)
    by_small = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(given.lower(), by_small, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {by_small[near[0]]!r}?"
    return f"; there is {', '.join(map(repr, choices))}" if 0 < len(choices) <= 12 else ""
