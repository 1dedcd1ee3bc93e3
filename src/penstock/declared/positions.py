"""Where in a TOML text each key stands; tomllib gives values without their places. Pure.

The text was parsed by tomllib before: what is valid may be scanned with little care. A path is what one would index the
parsed value with: `("steps", 0, "sql")`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\s#][^,\]}\n#]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, both counted from 1."""

    line: int
    column: int


class Positions:
    """The places of keys and values of one text."""

    def __init__(self, text: str) -> None:
        self._scan = _Scan(text)
        self._scan.run()

    def of(self, path: Path) -> Place:
        """Where the key is; where what it belongs to is when it is not in the text; else the first line."""
        while path:
            found = self._scan.keys.get(path)
            if found is not None:
                return found
            path = path[:-1]
        return Place(1, 1)

    def of_value(self, path: Path) -> Place:
        """Where the value begins: a string's first character, behind its quotes."""
        return self._scan.values.get(path) or self.of(path)

    def inside(self, path: Path, text: str, at: int) -> Place:
        """Where the character `at` of a string value is. Escapes are not counted: it is a place to look at."""
        begin = self.of_value(path)
        before = text[:at]
        lines = before.count("\n")
        column = at - (before.rfind("\n") + 1)
        return Place(begin.line + lines, column + 1 if lines else begin.column + column)


class _Scan:
    """One pass over the text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.keys: dict[Path, Place] = {}
        self.values: dict[Path, Place] = {}
        self._counts: dict[Path, int] = {}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def run(self) -> None:
        table: Path = ()
        while self._skip_space_and_comments():
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def place(self, at: int | None = None) -> Place:
        from bisect import bisect_right

        position = self.at if at is None else at
        line = bisect_right(self._starts, position)
        return Place(line, position - self._starts[line - 1] + 1)

    def _skip_space_and_comments(self) -> bool:
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                self.at = self._find("\n")
            elif self.text[self.at].isspace() or self.text[self.at] == ",":
                self.at += 1
            else:
                return True
        return False

    def _find(self, wanted: str) -> int:
        found = self.text.find(wanted, self.at)
        return len(self.text) if found < 0 else found

    def _header(self) -> Path:
        begin = self.place()
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        path = self._resolve(tuple(part for part, _ in self._dotted()))
        self.at = self._find("]") + (2 if many else 1)
        if many:
            index = self._counts.get(path, -1) + 1
            self._counts[path] = index
            self.keys.setdefault(path, begin)
            path = (*path, index)
        self.keys[path] = begin
        for length in range(1, len(path)):
            # `[sinks.lake]` is where `sinks` is, if nothing else is.
            self.keys.setdefault(path[:length], begin)
        return path

    def _resolve(self, names: tuple[str, ...]) -> Path:
        """`[steps.x]` below `[[steps]]` means the last of them."""
        path: Path = ()
        for name in names[:-1]:
            path = (*path, name)
            if path in self._counts:
                path = (*path, self._counts[path])
        return (*path, names[-1])

    def _dotted(self) -> Iterator[tuple[str, Place]]:
        while True:
            self._skip_blanks()
            begin = self.place()
            yield self._key(), begin
            self._skip_blanks()
            if not self.text.startswith(".", self.at):
                return
            self.at += 1

    def _skip_blanks(self) -> None:
        while self.text.startswith((" ", "\t"), self.at):
            self.at += 1

    def _key(self) -> str:
        quote = self.text[self.at]
        if quote in "\"'":
            begin = self.at + 1
            self.at = begin
            while self.text[self.at] != quote:
                self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
            self.at += 1
            return self.text[begin : self.at - 1]
        found = _BARE.match(self.text, self.at)
        assert found is not None, "tomllib has accepted this text"
        self.at = found.end()
        return found[0]

    def _pair(self, table: Path) -> None:
        path = table
        for part, begin in self._dotted():
            path = (*path, part)
            self.keys.setdefault(path, begin)
        self.at = self._find("=") + 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip_blanks()
        start = self.text[self.at]
        if start in "\"'":
            self._string(path)
            return
        self.values[path] = self.place()
        if start == "[":
            self._inside("]", path)
        elif start == "{":
            self._inside("}", path)
        else:
            found = _SCALAR.match(self.text, self.at)
            assert found is not None, "tomllib has accepted this text"
            self.at = found.end()

    def _inside(self, end: str, path: Path) -> None:
        self.at += 1
        index = 0
        while self._skip_space_and_comments() and self.text[self.at] != end:
            if end == "]":
                self.keys[(*path, index)] = self.place()
                self._value((*path, index))
                index += 1
            else:
                self._pair(path)
        self.at += 1

    def _string(self, path: Path) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(mark)
        if len(mark) == 3 and self.text.startswith(("\n", "\r\n"), self.at):
            # The first line break of a long string is not part of it.
            self.at = self._find("\n") + 1
        self.values[path] = self.place()
        while not self.text.startswith(mark, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(mark)
        while len(mark) == 3 and self.text.startswith(quote, self.at):
            # Up to two quotes may stand right before the three that end it.
            self.at += 1
