"""What is wrong with a file: every mistake with its place and, where one can guess, what was meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.model.closest import closest
from penstock.model.errors import PenstockError

_TOML_PLACE = re.compile(r"^(.*) \(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One thing to mend. `line` and `column` count from 1; 0 means the file as a whole."""

    line: int
    column: int
    words: str

    def at(self, file: str) -> str:
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.words}"


def text_of(data: bytes, file: str) -> str:
    """What a file says; PenstockError with the place of what is no text."""
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as broken:
        line = data.count(b"\n", 0, broken.start) + 1
        raise PenstockError(f"{file}:{line}: this is not UTF-8 text: {broken.reason}") from None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or which there are when nothing is near; empty when there are none."""
    choices = list(known)
    near = closest(given, choices, least=0.6)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; there is {', '.join(map(repr, choices))}" if 0 < len(choices) <= 12 else ""


def not_toml(words: str, text: str) -> Mistake:
    """What tomllib said of a text that it does not understand."""
    found = _TOML_PLACE.match(words)
    if found is None:
        # tomllib names the end of the text in words.
        return Mistake(text.count("\n") + 1, 1, f"this is not TOML: {words}")
    return Mistake(int(found[2]), int(found[3]), f"this is not TOML: {found[1]}")
