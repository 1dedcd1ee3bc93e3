"""Config files as text: Java's `.properties`, read and written, and TOML. Opening files is the caller's business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from penstock.model.config.definition import double_text

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {char: "\\" + letter for letter, char in _ESCAPES.items()} | {char: "\\" + char for char in "\\=:#!"}


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a `.properties` text; a later line wins. ValueError for a malformed unicode escape."""
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end = _end_of_key(line)
        rest = line[key_end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        try:
            pairs[_unescape(line[:key_end])] = _unescape(rest)
        except ValueError as wrong:
            raise ValueError(f"line {number}: {wrong}") from None
    return pairs


def property_lines(text: str) -> dict[str, int]:
    """The line that each property of a `.properties` text is given in, counted from 1; the later one that wins."""
    return {_unescape(line[: _end_of_key(line)]): number for number, line in _logical_lines(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, with continuations joined, and the number of the first of each."""
    natural = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)
    for number, first in natural:
        line = first.lstrip(_BLANKS)
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            # A line that begins with # is text here: a comment cannot stand inside a value.
            line = line[:-1] + next(natural, (0, ""))[1].lstrip(_BLANKS)
        yield number, line


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\":
            char = text[position : position + 1]
            position += 1
            if char == "u":
                pieces.append(_unicode(text[position : position + 4]))
                position += 4
                continue
            char = _ESCAPES.get(char, char)
        pieces.append(char)
    # Characters beyond the basic plane are written as two escapes, which make one character only together.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode(digits: str) -> str:
    if len(digits) != 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise ValueError(f"\\u{digits} is not a unicode escape: it needs four hexadecimal digits")
    return chr(int(digits, 16))


def write_properties(pairs: Mapping[str, str]) -> str:
    """The pairs as `.properties` text, one a line, escaped as Java escapes them."""
    return "".join(f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in pairs.items())


def _escape(text: str, *, key: bool) -> str:
    pieces: list[str] = []
    for position, char in enumerate(text):
        if char == " ":
            # In a value only a leading blank would be lost; in a key every blank would end it.
            pieces.append("\\ " if key or position == 0 else " ")
        elif char in _ESCAPED:
            pieces.append(_ESCAPED[char])
        elif " " <= char <= "~":
            pieces.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            pieces.extend(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
    return "".join(pieces)


def parse_toml(text: str) -> dict[str, str]:
    """Properties of a TOML text. Names may be quoted or nested: `"log.segment.bytes" = 1` or `segment.bytes = 1` in
    `[log]`. ValueError when the text is no TOML, a value has no meaning here, or a name is given twice."""
    import tomllib  # only TOML files need it

    pairs: dict[str, str] = {}
    for name, value in _flattened(tomllib.loads(text), ""):
        if name in pairs:
            raise ValueError(f"{name} is given twice")
        pairs[name] = _toml_text(name, value)
    return pairs


def _flattened(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _toml_text(name: str, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case float():
            return double_text(value)
        case list():
            return ",".join(_toml_text(name, entry) for entry in value)
        case _:
            raise ValueError(f"{name}: a value must be text, a number, true, false or a list of these")
