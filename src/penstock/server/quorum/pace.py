"""How much goes through the metadata log on this node, and how long it takes to be committed: counted, not decided."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.model.ids import Offset

_AWAITED_MAX: Final = 1_000
"""Batches whose commit is timed; while nothing is committed the oldest are forgotten."""


class QuorumPace:
    """Records appended as leader and fetched as follower, and the commits of what this node appended."""

    __slots__ = ("_awaited", "appended_records", "commit_ms", "commits", "fetched_records")

    def __init__(self) -> None:
        self.appended_records = self.fetched_records = self.commits = 0
        self.commit_ms = 0.0
        self._awaited: deque[tuple[Offset, float]] = deque(maxlen=_AWAITED_MAX)

    def appended(self, count: int, end: Offset, now_ms: float) -> None:
        self.appended_records += count
        self._awaited.append((end, now_ms))

    def committed(self, to: Offset, now_ms: float) -> None:
        """Everything before `to` is committed."""
        awaited = self._awaited
        while awaited and awaited[0][0] <= to:
            self.commits += 1
            self.commit_ms += now_ms - awaited.popleft()[1]

    def resigned(self) -> None:
        """What this node appended may be cut, or committed by somebody else."""
        self._awaited.clear()
