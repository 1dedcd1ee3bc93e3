"""Options as they were given: case-insensitive names, text values, errors that name the option. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from penstock.model.closest import closest
from penstock.spark.errors import BadOption

INT64_MAX: Final = (1 << 63) - 1

_UNIT_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


class Given:
    """Reads options; what is not there is None or the default."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): str(value) for name, value in options.items()}

    @property
    def values(self) -> Mapping[str, str]:
        """By lower-case name."""
        return self._values

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise BadOption(f"{name}={text!r}: expected true or false")
        return text.strip().lower() == "true"

    def count(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        text = self.text(name)
        if text is None:
            return default
        stripped = text.strip()
        if not stripped.lstrip("-").isdigit() or not least <= int(stripped) <= INT64_MAX:
            raise BadOption(f"{name}={text!r}: expected a whole number of at least {least}")
        return int(stripped)

    def duration_ms(self, name: str, default: str) -> int:
        """A time as Spark writes it: 15m, 30s, 500ms; a number alone is milliseconds."""
        text = self.text(name) or default
        found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
        if found is None or (found[2] or "ms") not in _UNIT_MS:
            raise BadOption(f"{name}={text!r}: expected a time such as 15m, 30s or 500ms")
        return int(int(found[1]) * _UNIT_MS[found[2] or "ms"])

    def one_of(self, name: str, choices: Iterable[str], default: str) -> str:
        text = self.text(name)
        if text is None:
            return default
        known = {choice.lower(): choice for choice in choices}
        if text.strip().lower() not in known:
            raise BadOption(f"{name}={text!r}: expected {' or '.join(known.values())}")
        return known[text.strip().lower()]

    def names(self, name: str) -> tuple[str, ...] | None:
        """A list with commas between; None when it was not given."""
        text = self.text(name)
        if text is None:
            return None
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def under(self, prefix: str) -> dict[str, str]:
        """Those whose name begins with `prefix`, by lower-case name without it."""
        return {name[len(prefix) :]: value for name, value in self._values.items() if name.startswith(prefix)}


def nearest(name: str, known: Iterable[str]) -> str:
    """ "; did you mean …?" when a known name is near."""
    near = closest(name, known, least=0.6)
    return "" if near is None else f"; did you mean {near!r}?"
