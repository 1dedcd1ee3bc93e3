"""Positions of groups before they were moved, so that a move can be taken back for an hour."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.operations.group_plans import Reposition

KEPT_MS: Final = 3_600_000
KEPT_MAX: Final = 500
POSITIONS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """A move that was made; `moves` leads back."""

    id: str
    cluster: str
    group: str
    by: str
    at_ms: int
    moves: tuple[Reposition, ...]

    def told(self) -> dict[str, Any]:
        until_ms = self.at_ms + KEPT_MS
        return {"id": self.id, "at_ms": self.at_ms, "until_ms": until_ms, "by": self.by, "positions": len(self.moves)}


class MovedGroups:
    """The moves of the last hour, up to a number of them."""

    def __init__(self) -> None:
        self._moved: OrderedDict[str, MovedGroup] = OrderedDict()

    def keep(self, cluster: str, group: str, by: str, now_ms: int, moves: Sequence[Reposition]) -> str | None:
        """The name to take it back by; None for one that is too large to be kept."""
        if len(moves) > POSITIONS_MAX:
            return None
        back = tuple(Reposition(move.topic, move.partition, move.to, move.was) for move in moves)
        moved = MovedGroup(secrets.token_urlsafe(12), cluster, group, by, now_ms, back)
        self._moved[moved.id] = moved
        while len(self._moved) > KEPT_MAX:
            self._moved.popitem(last=False)
        return moved.id

    def of(self, cluster: str, group: str, now_ms: int) -> list[MovedGroup]:
        """Those of a group, newest first."""
        return [
            moved
            for moved in reversed(self._moved.values())
            if (moved.cluster, moved.group) == (cluster, group) and now_ms - moved.at_ms <= KEPT_MS
        ]

    def find(self, cluster: str, group: str, move_id: str, now_ms: int) -> MovedGroup | None:
        """One of a group, if it is still to be had."""
        return next((moved for moved in self.of(cluster, group, now_ms) if moved.id == move_id), None)

    def forget(self, moved: MovedGroup) -> None:
        """One that was taken back."""
        self._moved.pop(moved.id, None)
