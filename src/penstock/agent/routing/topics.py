"""Names of topics that are made of what events hold. Pure but for the names it remembers."""

from __future__ import annotations

import re
from typing import Final

TOPICS_MAX: Final = 1_000
"""How many topics one input may make, so that a field with ids cannot flood the cluster."""
NAME_CHARACTERS_MAX: Final = 249
UNKNOWN: Final = "unknown"

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9._-]")
_SEEN_MAX: Final = 4 * TOPICS_MAX


def wrong_topic(name: str) -> str | None:
    """What is wrong with the fixed name of a topic, if anything."""
    bad = _NOT_ALLOWED.search(name)
    if bad is not None:
        return f"{bad[0]!r} may not stand in the name of a topic: letters, digits, '.', '_' and '-' may"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"the name of a topic has at most {NAME_CHARACTERS_MAX} characters; this has {len(name)}"
    return None


def allowed_name(text: str) -> str:
    """A text as the name of a topic: what may not stand in one becomes `_`."""
    name = _NOT_ALLOWED.sub("_", text)[:NAME_CHARACTERS_MAX]
    return name.replace(".", "_") if name in ("", ".", "..") else name


class TopicNames:
    """Turns filled templates into topics, up to a bound of different ones."""

    def __init__(self, topics_max: int = TOPICS_MAX) -> None:
        self._topics_max = topics_max
        self._made: set[str] = set()
        self._seen: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The topic, or an empty text when this event must not make one; `why` then says it."""
        known = self._seen.get(text)
        if known is not None:
            return known
        name = allowed_name(text)
        if self.why(name):
            return ""
        self._made.add(name)
        if len(text) <= NAME_CHARACTERS_MAX:
            # Longer texts are not remembered: a field may hold a megabyte.
            if len(self._seen) >= _SEEN_MAX:
                self._seen.clear()
            self._seen[text] = name
        return name

    def why(self, text: str) -> str:
        """Why a text is not made a topic; empty when it may be one."""
        name = allowed_name(text)
        if not name.strip("_") or name.startswith("__"):
            # What senders write into a field must not reach __consumer_offsets.
            return f"{text[:80]!r} would be a topic of the cluster's own or has no name"
        if name not in self._made and len(self._made) >= self._topics_max:
            return f"{text[:80]!r} would be topic number {self._topics_max + 1} of this input"
        return ""
