"""A text cut into words, quoted texts and signs, by the rules of Java's StreamTokenizer as Kafka sets it up.

Words begin with a letter, `_`, `$` or anything from U+00A0 on, and go on with these, digits, `.` and `-`. Numbers are
tokens of their own that have no text: whatever begins with a digit, a dot, or a minus before one of these. Texts stand
in `"` or `'` and end at the latest with their line. Comments are `/* … */`, `//` and, as a surprise, a single `/` to
the end of the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_DIGITS: Final = frozenset("0123456789")
_NUMBER: Final = _DIGITS | {"."}
_OCTAL: Final = frozenset("01234567")
_LINE_ENDS: Final = frozenset("\n\r")
_QUOTES: Final = frozenset("\"'")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$")
# Where the text ends within an escape Java takes the -1 of its reader for a character.
_END_AS_CHARACTER: Final = "\uffff"


@dataclass(frozen=True, slots=True)
class Lexeme:
    """`text` is the word or what stood in quotes, None for numbers and signs; `sign` is the one character of a sign."""

    text: str | None = None
    sign: str = ""


def lexemes(text: str) -> Iterator[Lexeme]:
    return _Cutter(text).all()


class _Cutter:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def all(self) -> Iterator[Lexeme]:
        while self._skip_to_token():
            yield self._next()

    def _skip_to_token(self) -> bool:
        """Past blanks and comments; False at the end of the text."""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char <= " ":
                self._at += 1
            elif char != "/":
                return True
            elif self._text.startswith("/*", self._at):
                self._skip_block()
            else:
                self._skip_line()
        return False

    def _skip_line(self) -> None:
        # The character after the first slash is taken unseen: a slash at the end of its line hides the next line, too.
        self._at += 2
        while self._at < len(self._text) and self._text[self._at] not in _LINE_ENDS:
            self._at += 1

    def _skip_block(self) -> None:
        self._at += 2
        before = ""
        while self._at < len(self._text):
            char = self._take()
            if char == "/" and before == "*":
                return
            # After a line's end Java takes the next character without looking whether it ends the comment.
            if char == "\r":
                char = self._take()
                if char == "\n":
                    char = self._take()
            elif char == "\n":
                char = self._take()
            before = char

    def _next(self) -> Lexeme:
        char = self._text[self._at]
        if char in _NUMBER or (char == "-" and self._peek(1) in _NUMBER):
            return self._number()
        if char in _LETTERS or char >= "\u00a0":
            return self._word()
        if char in _QUOTES:
            return self._quoted()
        self._at += 1
        return Lexeme(sign=char)

    def _number(self) -> Lexeme:
        if self._text[self._at] == "-":
            self._at += 1
        dotted = False
        while (char := self._peek()) in _DIGITS or (char == "." and not dotted):
            dotted = dotted or char == "."
            self._at += 1
        return Lexeme()

    def _word(self) -> Lexeme:
        begin = self._at
        while (char := self._peek()) and (char in _LETTERS or char in _NUMBER or char == "-" or char >= "\u00a0"):
            self._at += 1
        return Lexeme(self._text[begin : self._at])

    def _quoted(self) -> Lexeme:
        quote = self._take()
        found: list[str] = []
        while (char := self._peek()) and char != quote and char not in _LINE_ENDS:
            self._at += 1
            found.append(self._escaped() if char == "\\" else char)
        if char == quote:
            self._at += 1
        return Lexeme("".join(found))

    def _escaped(self) -> str:
        char = self._take()
        if not char:
            return _END_AS_CHARACTER
        if char not in _OCTAL:
            return _ESCAPES.get(char, char)
        # Three digits only if they fit into a byte.
        digits = char
        while len(digits) < (3 if char <= "3" else 2) and self._peek() in _OCTAL:
            digits += self._take()
        return chr(int(digits, 8))

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _peek(self, ahead: int = 0) -> str:
        """The character there; empty beyond the end, which is in none of the sets."""
        return self._text[self._at + ahead : self._at + ahead + 1]
