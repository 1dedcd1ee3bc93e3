"""The command that does the same in a terminal. Names come from outside and are quoted; none is taken for an option."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def command(*words: str, names: Sequence[str] = (), options: Sequence[str] = ()) -> str:
    """`penstock WORDS OPTIONS NAMES`."""
    marked = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join(["penstock", *words, *options, *marked, *names])
