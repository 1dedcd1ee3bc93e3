"""The table itself, and how a script gets into it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.compat.transactions.stage import NOBODY, Stage

__all__ = ["INT16_MAX", "INT32_MAX", "INT64_MAX", "NOBODY", "SCRIPTS", "Play", "Script", "script"]

Play = Callable[[Stage, int], Awaitable[None]]
INT16_MAX, INT32_MAX, INT64_MAX = (1 << 15) - 1, (1 << 31) - 1, (1 << 63) - 1


class Script(NamedTuple):
    """Steps that are about one API, in some of its versions."""

    api: str
    name: str
    play: Play
    since: int
    until: int


SCRIPTS: list[Script] = []


def script(api: str, *, since: int = 0, until: int = 99) -> Callable[[Play], Play]:
    def add(play: Play) -> Play:
        SCRIPTS.append(Script(api, play.__name__.replace("_", " "), play, since, until))
        return play

    return add
