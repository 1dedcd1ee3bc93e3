"""Which of what a spool held is in topics already: positions of the spool, which go into transactions like a file's.

What is put into the spool gets a mark: the life of the agent, and a number that counts up in it. Marks leave the disk
in their order, so the last of each life that was committed says all; but what was in flight when the agent stopped is
older than its number, and is remembered one by one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.agent.checkpoints import Change, Row

KEY: Final = "sent"
LIVES_MAX: Final = 64
"""A spool that outlives so many lives of its agent is a wonder."""


class Mark(NamedTuple):
    """Of one load in a spool."""

    life: str
    number: int
    flight: int = 0
    """The transaction in which it was when it was put there; 0 when it was in none."""


class SpoolMarks:
    """Of one input's spool. What comes in while positions are not known yet has its marks already."""

    def __init__(self, life: str) -> None:
        self._life = life
        self._lives: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._singles: set[tuple[str, int]] = set()
        self._staged: list[tuple[Mark, bool]] = []
        self._told = self._facts([])
        self._number = 0

    def learn(self, row: Row | None, lives: Mapping[str, int]) -> None:
        """What earlier lives have sent: the row, and of each the last committed transaction. Before anything is."""
        assert not self._sent, "nothing is sent before positions are known"
        facts = {} if row is None else row.facts
        self._lives = dict(lives)
        self._sent = dict(facts.get("sent", {}))
        self._singles = {(life, number) for life, number in facts.get("singles", ())}
        self._told = self._facts([])

    def new(self, flight: int = 0) -> Mark:
        self._number += 1
        return Mark(self._life, self._number, flight)

    def arrived(self, mark: Mark | None) -> bool:
        """Whether what was found in the spool is in its topics already."""
        if mark is None:
            return False
        if mark.number <= self._sent.get(mark.life, 0) or (mark.life, mark.number) in self._singles:
            return True
        return bool(mark.flight) and self._lives.get(mark.life) == mark.flight

    def stage(self, mark: Mark, *, in_order: bool) -> None:
        """It is in the transaction that is about to be committed."""
        self._staged.append((mark, in_order))

    def unstage(self) -> None:
        self._staged.clear()

    def committed(self, mark: Mark, *, in_order: bool) -> None:
        """Its transaction was committed, whether or not it had its mark by then."""
        self._add(self._sent, self._singles, mark, in_order)

    @property
    def pending(self) -> bool:
        return self._facts(self._staged) != self._told

    def take(self) -> Change:
        facts = self._facts(self._staged)
        self._staged.clear()

        def committed() -> None:
            self._told = facts

        return Change([Row(KEY, facts=facts)], committed=committed)

    def _facts(self, staged: list[tuple[Mark, bool]]) -> dict[str, object]:
        sent, singles = dict(self._sent), set(self._singles)
        for mark, in_order in staged:
            self._add(sent, singles, mark, in_order)
        return {"sent": sent, "singles": sorted(map(list, singles))}

    @staticmethod
    def _add(sent: dict[str, int], singles: set[tuple[str, int]], mark: Mark, in_order: bool) -> None:
        if in_order:
            sent[mark.life] = max(sent.get(mark.life, 0), mark.number)
            while len(sent) > LIVES_MAX:
                del sent[next(iter(sent))]
        else:
            singles.add((mark.life, mark.number))
