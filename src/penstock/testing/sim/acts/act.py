"""What an act is: a name that the story counts, a chance to take part in a world, and a deed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.trouble import Trouble

Possible: TypeAlias = "Callable[[Plan], bool]"


def always(_plan: Plan) -> bool:
    return True


def several_nodes(plan: Plan) -> bool:
    return plan.nodes > 1


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that an administrator asks for. Its deed says whether it came about: many are refused while things go
    wrong, and that is as it should be."""

    name: str
    deed: Callable[[Administrator, Random], Awaitable[bool]]
    chance: float = 0.6
    possible: Possible = always


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that goes wrong. Its deed does it and gives back how it is made good, or None when it must not be."""

    name: str
    deed: Callable[[Trouble, Random], Coroutine[Any, Any, None] | None]
    chance: float = 0.5
    possible: Possible = always


async def for_good() -> None:
    """What a deed gives back when nobody has to make it good, or all is made good at the end."""
