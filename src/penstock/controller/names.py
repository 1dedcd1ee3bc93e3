"""Topic names: which are legal, and which would share a metric name because `.` and `_` look alike there."""

from __future__ import annotations

import re

from penstock.model.errors import INVALID_TOPIC_EXCEPTION, Refused

NAME_CHARACTERS_MAX = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Refused with INVALID_TOPIC_EXCEPTION and the reason when no topic may have this name."""
    if not name:
        raise Refused(INVALID_TOPIC_EXCEPTION, "a topic name cannot be empty")
    if name in (".", ".."):
        raise Refused(INVALID_TOPIC_EXCEPTION, f"a topic cannot be called {name!r}: its directory could not be made")
    if len(name) > NAME_CHARACTERS_MAX:
        raise Refused(
            INVALID_TOPIC_EXCEPTION,
            f"a topic name has at most {NAME_CHARACTERS_MAX} characters, this one has {len(name)}",
        )
    if _LEGAL.fullmatch(name) is None:
        raise Refused(
            INVALID_TOPIC_EXCEPTION, f"topic name {name!r} may only contain ASCII letters, digits, '.', '_' and '-'"
        )


class NameIndex:
    """Finds the existing topics whose names differ from a new one only in `.` and `_`."""

    __slots__ = ("_by_folded",)

    def __init__(self) -> None:
        self._by_folded: dict[str, set[str]] = {}

    def add(self, name: str) -> None:
        if _folds(name):
            self._by_folded.setdefault(_folded(name), set()).add(name)

    def remove(self, name: str) -> None:
        names = self._by_folded.get(_folded(name))
        if names is not None:
            names.discard(name)
            if not names:
                del self._by_folded[_folded(name)]

    def collision(self, name: str) -> str | None:
        """An existing name that `name` cannot be told from in metrics; None when it is free."""
        return min(self._by_folded.get(_folded(name), {""})) or None if _folds(name) else None


def _folds(name: str) -> bool:
    return "." in name or "_" in name


def _folded(name: str) -> str:
    return name.replace(".", "_")
