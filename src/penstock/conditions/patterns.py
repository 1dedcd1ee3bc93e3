"""Patterns that users write. RE2 takes time in proportion to the text, whatever the pattern; Python's `re` may not.

So RE2 comes first, and `re` only for what RE2 does not have: look-around and back-references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from penstock.model.patterns import NotRe2, compile_re2


class PatternBroken(ValueError):
    """Not a pattern, in words."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern, whichever engine took it."""

    text: str
    linear: bool
    """False: only `re` took it, and an evil line can keep it busy."""
    names: Mapping[str, int]
    """Named groups and their numbers."""
    found: Callable[[str], bool]
    """Whether it occurs anywhere in a text."""
    groups: Callable[[str], tuple[str | None, ...] | None]
    """The named groups of the first occurrence, in the order of `names`; None when it does not occur."""
    replace: Callable[[Callable[[str], str], str], str]
    """A text with every occurrence replaced by what the function says of it."""


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """Raises PatternBroken for what is no pattern at all."""
    try:
        compiled = compile_re2(text.encode())
    except NotRe2:
        return _with_python(text)
    names = {name.decode(): number for name, number in compiled.groupindex.items()}
    names = dict(sorted(names.items(), key=lambda item: item[1]))
    numbers = tuple(names.values())
    # Texts go in as bytes: RE2 counts in bytes, and its binding is slow at turning them into characters.
    search, finditer = compiled.search, compiled.finditer

    def groups(line: str) -> tuple[str | None, ...] | None:
        encoded = _encoded(line)
        match = search(encoded)
        if match is None:
            return None
        span = match.span
        return tuple(
            _decoded(encoded[begin:end]) if begin >= 0 else None for begin, end in [span(number) for number in numbers]
        )

    def replace(instead: Callable[[str], str], line: str) -> str:
        encoded, pieces, end = _encoded(line), [], 0
        for match in finditer(encoded):
            begin, stop = match.span()
            pieces.append(_decoded(encoded[end:begin]))
            pieces.append(instead(_decoded(encoded[begin:stop])) if stop > begin else "")
            end = stop
        pieces.append(_decoded(encoded[end:]))
        return "".join(pieces)

    return Pattern(text, True, names, lambda line: search(_encoded(line)) is not None, groups, replace)


def _with_python(text: str) -> Pattern:
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternBroken(f"this is no pattern: {error}") from error
    names = dict(sorted(compiled.groupindex.items(), key=lambda item: item[1]))
    numbers = tuple(names.values())

    def groups(line: str) -> tuple[str | None, ...] | None:
        match = compiled.search(line)
        return None if match is None else tuple(match[number] for number in numbers)

    def replace(instead: Callable[[str], str], line: str) -> str:
        return compiled.sub(lambda match: instead(match[0]) if match[0] else "", line)

    return Pattern(text, False, names, lambda line: compiled.search(line) is not None, groups, replace)


def _encoded(line: str) -> bytes:
    """Bytes that were no UTF-8 come through here and back; other halves of surrogate pairs have no bytes at all."""
    try:
        return line.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return line.encode("utf-8", "backslashreplace")


def _decoded(part: bytes) -> str:
    return part.decode("utf-8", "surrogateescape")
