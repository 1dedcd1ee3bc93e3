"""The name that was probably meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, known: Iterable[str], *, least: float = 0.7) -> str | None:
    """The known name that is most like `name`, whatever its case; None when none is at least so much like it."""
    from difflib import get_close_matches  # only a mistake needs it, and it is slow to import

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=least)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], *, least: float = 0.7) -> str:
    """The end of a sentence that says that there is no such name: `; did you mean orders?`, or nothing."""
    near = closest(name, known, least=least)
    return "" if near is None else f"; did you mean {near}?"
