"""Regular expressions of Java as Python's: what means the same is translated, what does not is refused.

Rules that were written for Kafka must give the same names here, and a rule that gave another name would let somebody in
as somebody else. So the grammar is read, not guessed: a construct that is not known to mean the same is an error at
start, with its name.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.model.errors import PenstockError

# Java's line ends, which `.` does not match and before the last of which `$` does.
_LINE_ENDS: Final = r"\n\r\u0085\u2028\u2029"
_ANY: Final = f"[^{_LINE_ENDS}]"
_END: Final = rf"(?!(?<=\r)\n)(?=(?:\r\n|[{_LINE_ENDS}])?\Z)"
_CLASSES: Final = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_LITERAL_ESCAPES: Final = frozenset("tnrf")
_GROUP: Final = re.compile(r"\(\?(?::|=|!|>|<=|<!|<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>)")
_REPEAT: Final = re.compile(r"\{([0-9]{1,5})(?:,([0-9]{1,5})?)?\}")
_HEX: Final = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
PATTERN_CHARACTERS_MAX: Final = 10_000


class DiffersFromJava(PenstockError):
    """A pattern that is none, or that would not mean the same as in Java."""


def compile_java(pattern: str) -> re.Pattern[str]:
    """`pattern` for Python. DiffersFromJava says what stands in the way."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise DiffersFromJava(f"a pattern has at most {PATTERN_CHARACTERS_MAX} characters")
    translated = _Translator(pattern).all()
    try:
        return re.compile(translated)
    except (re.error, OverflowError, RecursionError) as wrong:
        raise DiffersFromJava(f"{pattern!r} is no pattern: {wrong}") from None


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._repeatable = False  # whether what stands before can be repeated

    def all(self) -> str:
        found: list[str] = []
        while self._at < len(self._pattern):
            found.append(self._piece())
        return "".join(found)

    def _piece(self) -> str:
        char = self._pattern[self._at]
        match char:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case "*" | "+" | "?" | "{":
                return self._quantifier()
            case "^" | "|":
                return self._plain(char, char, repeatable=False)
            case "$":
                return self._plain(char, _END, repeatable=False)
            case ".":
                return self._plain(char, _ANY)
            case ")":
                return self._plain(char, char)
        return self._plain(char, re.escape(char))

    def _plain(self, read: str, written: str, repeatable: bool = True) -> str:
        self._at += len(read)
        self._repeatable = repeatable
        return written

    def _group(self) -> str:
        if self._pattern.startswith("(?", self._at):
            found = _GROUP.match(self._pattern, self._at)
            if found is None:
                raise self._differs("this kind of group")
            written = found[0] if found["name"] is None else f"(?P<{found['name']}>"
            return self._plain(found[0], written, repeatable=False)
        return self._plain("(", "(", repeatable=False)

    def _quantifier(self) -> str:
        if not self._repeatable:
            raise self._differs("a repetition of nothing")
        if self._pattern[self._at] == "{":
            found = _REPEAT.match(self._pattern, self._at)
            if found is None or (found[2] and int(found[1]) > int(found[2])):
                raise self._differs("this repetition")
            written = found[0]
        else:
            written = self._pattern[self._at]
        self._at += len(written)
        following = self._pattern[self._at : self._at + 1]
        if following in ("?", "+"):
            self._at += 1
            written += following
        self._repeatable = False
        return written

    def _escape(self) -> str:
        following = self._pattern[self._at + 1 : self._at + 2]
        if following.lower() in _CLASSES:
            inverted = "^" if following.isupper() else ""
            return self._plain("\\" + following, f"[{inverted}{_CLASSES[following.lower()]}]")
        return self._literal_escape()

    def _literal_escape(self) -> str:
        """An escape that means one character, in a class or outside."""
        following = self._pattern[self._at + 1 : self._at + 2]
        if (found := _HEX.match(self._pattern, self._at)) is not None:
            return self._plain(found[0], found[0])
        if following in _LITERAL_ESCAPES or (following.isascii() and following and not following.isalnum()):
            return self._plain(
                "\\" + following, "\\" + following if following in _LITERAL_ESCAPES else re.escape(following)
            )
        raise self._differs(f"the escape \\{following}")

    def _class(self) -> str:
        self._at += 1
        written = "["
        if self._pattern.startswith("^", self._at):
            self._at += 1
            written += "^"
        members: list[str] = []
        while True:
            char = self._pattern[self._at : self._at + 1]
            if char == "]" and members:
                self._at += 1
                self._repeatable = True
                return written + "".join(members) + "]"
            members.append(self._member(char, members))

    def _member(self, char: str, before: list[str]) -> str:
        if char in ("", "[", "]") or self._pattern.startswith("&&", self._at):
            raise self._differs("this class of characters")
        if char == "\\":
            following = self._pattern[self._at + 1 : self._at + 2]
            if following in _CLASSES:
                self._at += 2
                return _CLASSES[following]
            return self._literal_escape()
        self._at += 1
        if char == "-":
            return self._minus(before)
        return "\\" + char if char in "^~|&" else char

    def _minus(self, before: list[str]) -> str:
        """At either end a minus is itself, between two characters it makes a range; other places differ."""
        following = self._pattern[self._at : self._at + 2]
        if not before or following[:1] == "]":
            return "\\-"
        of_classes = before[-1] in _CLASSES.values() or following[1:] in _CLASSES
        if of_classes or following[:1] == "-" or (len(before) > 1 and before[-2] == "-"):
            raise self._differs("this range of characters")
        return "-"

    def _differs(self, what: str) -> DiffersFromJava:
        return DiffersFromJava(f"{self._pattern!r}: {what} at character {self._at + 1} is not known here")
