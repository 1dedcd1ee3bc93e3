"""Version ranges as Kafka writes them: `"0-4"`, `"3+"`, `"2"`, `"none"`."""

from __future__ import annotations

from typing import NamedTuple

NEWEST = 32767


class Versions(NamedTuple):
    """A closed range of versions. `Versions.parse` reads the text form; an empty range contains nothing."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), NEWEST)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def has(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.last == NEWEST:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


NO_VERSIONS = Versions(1, 0)
EVERY_VERSION = Versions(0, NEWEST)
