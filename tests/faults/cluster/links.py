"""How directed links treat frames: what is lost, what comes late, what overtakes. Pure; `switch.py` obeys it.

Several troubles may lie on one link at once, and each goes away alone. What they do adds up: any of them cuts, losses
are independent, delays follow each other, the narrowest pipe counts.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

Pair = tuple[int, int]
"""From whom, to whom."""

# A pipe that is full for so long drops what comes, as a router with a short queue does.
QUEUE_S = 0.2


class Manner(NamedTuple):
    """One trouble. All zero: a link that nothing is wrong with."""

    cut: bool = False
    loss: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    reorder: float = 0.0
    """The share of frames that are held back, by up to `reorder_ms`, while those behind them pass."""
    reorder_ms: float = 0.0
    kilobits_per_s: int = 0

    def beside(self, other: Manner) -> Manner:
        """Both at once."""
        pipes = [pipe for pipe in (self.kilobits_per_s, other.kilobits_per_s) if pipe]
        return Manner(
            self.cut or other.cut,
            1 - (1 - self.loss) * (1 - other.loss),
            self.delay_ms + other.delay_ms,
            self.jitter_ms + other.jitter_ms,
            max(self.reorder, other.reorder),
            max(self.reorder_ms, other.reorder_ms),
            min(pipes, default=0),
        )


WELL = Manner()
CUT = Manner(cut=True)


class _Link:
    __slots__ = ("last_s", "manner", "pipe_free_s")

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.last_s = 0.0
        self.pipe_free_s = 0.0


class Links:
    """All links of a network. A link that nothing was imposed on is not in here."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._troubles: dict[int, tuple[frozenset[Pair], Manner]] = {}
        self._links: dict[Pair, _Link] = {}

    def impose(self, number: int, pairs: Iterable[Pair], manner: Manner) -> None:
        self._troubles[number] = (frozenset(pairs), manner)
        self._add_up()

    def lift(self, number: int) -> None:
        self._troubles.pop(number, None)
        self._add_up()

    def _add_up(self) -> None:
        sums: dict[Pair, Manner] = {}
        for pairs, manner in self._troubles.values():
            for pair in sorted(pairs):
                sums[pair] = sums.get(pair, WELL).beside(manner)
        kept = self._links
        self._links = {pair: kept.get(pair) or _Link(manner) for pair, manner in sums.items()}
        for pair, manner in sums.items():
            self._links[pair].manner = manner

    def arrival(self, pair: Pair, size: int, now_s: float) -> float | None:
        """When a frame that is sent now arrives; None when it never does."""
        link = self._links.get(pair)
        if link is None:
            return now_s
        manner, chance = link.manner, self._chance
        if manner.cut or chance.random() < manner.loss:
            return None
        sent_s = now_s
        if manner.kilobits_per_s:
            if link.pipe_free_s - now_s > QUEUE_S:
                return None
            link.pipe_free_s = sent_s = max(now_s, link.pipe_free_s) + size / (manner.kilobits_per_s * 125)
        due_s = sent_s + (manner.delay_ms + manner.jitter_ms * chance.random()) / 1000
        # Frames keep their order however late they are, but for those that are held back.
        if chance.random() < manner.reorder:
            return max(due_s, link.last_s) + manner.reorder_ms * chance.random() / 1000
        link.last_s = due_s = max(due_s, link.last_s)
        return due_s
