"""Chance, with the habits that all drawings share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from random import Random
from typing import Any

_NAMES = ("name", "topic", "topic_name", "topic_id", "group_id", "resource_name", "member_id", "feature", "path")
_NUMBERS = ("partition_index", "partition", "index", "resource_type")


class Chance(Random):
    """A seeded source of random numbers that can also draw a few of something."""

    def happens(self, share: float) -> bool:
        return self.random() < share

    def several(self, maker: Callable[[], Any], *, twice: bool = True) -> list[Any]:
        """Mostly one, sometimes none or three, all about different things; now and then the same one twice."""
        drawn = {about(made): made for made in (maker() for _ in range(self.choice((0, 1, 1, 1, 1, 1, 2, 3))))}
        found = list(drawn.values())
        if twice and found and self.happens(0.03):
            found.append(found[0])
        return found


def about(made: Any) -> Any:
    """What tells one element of an array from another."""
    if not is_dataclass(made):
        return made
    return tuple(getattr(made, name) for name in (*_NAMES, *_NUMBERS) if hasattr(made, name))
