"""Patterns of RE2: matching takes time in proportion to the text, whatever the pattern. Pure.

RE2 would write to stderr what it does not like; here it says so in an error, in its own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, AnyStr, Protocol, cast


class NotRe2(ValueError):
    """No pattern of RE2's syntax; the message is RE2's reason. Look-around and back-references are none either."""


class Re2Pattern(Protocol[AnyStr]):
    """What is used of a compiled pattern. Over bytes, places are counted in bytes."""

    @property
    def groups(self) -> int: ...

    @property
    def groupindex(self) -> Mapping[AnyStr, int]: ...

    def search(self, text: AnyStr, /) -> Any: ...

    def fullmatch(self, text: AnyStr, /) -> Any: ...

    def finditer(self, text: AnyStr, /) -> Iterator[Any]: ...


def compile_re2(pattern: AnyStr, *, latin1: bool = False) -> Re2Pattern[AnyStr]:
    """The compiled pattern; `NotRe2` when it is none. With `latin1` every byte of a text is a character."""
    import re2  # type: ignore[import-untyped]  # it has no stubs, and few processes need it

    options = re2.Options()
    options.log_errors = False
    if latin1:
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return cast("Re2Pattern[AnyStr]", re2.compile(pattern, options))
    except re2.error as broken:
        why = broken.args[0] if broken.args else ""
        raise NotRe2(why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)) from None
