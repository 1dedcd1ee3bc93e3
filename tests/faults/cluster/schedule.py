"""Which faults begin when and end when, several at once. Pure: a seed and a menu in, waves out.

Faults come in waves. Within a wave they begin at random times, overlap, and end in any order; after it everything is
healed and the cluster has to become whole, which is also when a budget is full again:

- never more than `at_once` faults at a time, and never more nodes without a process than there are nodes;
- faults that lose bytes that were written, on at most `losses_max` nodes in a wave: a promise of acks=all holds as long
  as fewer than min.insync.replicas nodes forget before the ISR is whole again. A process that ends without a stop
  counts as one that forgot, because the controller cannot tell: beside a loss nobody else ends like that;
- every fault ends, so a majority of voters comes back.

A plan depends on the seed and the menu alone, whatever the processes do; what a fault finds when it begins (who leads)
does not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple


class Takes(Enum):
    """What of a node a fault has for itself while it lasts."""

    NOTHING = "nothing"
    PROCESS = "process"
    EVERY_PROCESS = "every process"
    CLOCK = "clock"


class Kind(NamedTuple):
    """One entry of the menu."""

    name: str
    takes: Takes = Takes.NOTHING
    loses: bool = False
    crashes: bool = False
    """Whether a process ends without a stop; whatever loses bytes does."""
    lasts_s: tuple[float, float] = (0.5, 5.0)


class Planned(NamedTuple):
    number: int
    kind: Kind
    begins_s: float
    ends_s: float
    seed: int
    """Whatever else is random about it comes from this."""

    def overlaps(self, other: Planned) -> bool:
        return self.begins_s < other.ends_s and other.begins_s < self.ends_s


class Verb(Enum):
    # In this order at the same instant: a node is given back before it is taken again.
    END = 0
    BEGIN = 1


class Act(NamedTuple):
    at_s: float
    verb: Verb
    fault: Planned


class Wave(NamedTuple):
    faults: tuple[Planned, ...]

    def acts(self) -> list[Act]:
        found = [Act(each.begins_s, Verb.BEGIN, each) for each in self.faults]
        found += [Act(each.ends_s, Verb.END, each) for each in self.faults]
        return sorted(found, key=lambda act: (act.at_s, act.verb.value, act.fault.number))

    @property
    def overlapping(self) -> int:
        """How many of its faults had company."""
        return sum(any(one.overlaps(other) for other in self.faults if other is not one) for one in self.faults)


class Planner:
    """Deals kinds like a deck of cards: each comes once before any comes again."""

    GAP_S_MAX = 1.5
    WAVE_MAX = 9

    def __init__(self, seed: str, kinds: Sequence[Kind], *, nodes: int, at_once: int = 3, losses_max: int = 1) -> None:
        self._chance = random.Random(seed)
        self._kinds, self._nodes, self._at_once, self._losses_max = list(kinds), nodes, at_once, losses_max
        self._deck: list[Kind] = []
        self._number = 0

    def waves(self, count: int) -> Iterator[Wave]:
        """Until so many faults are planned."""
        while self._number < count:
            yield self._wave(count - self._number)

    def _wave(self, left: int) -> Wave:
        chance, faults = self._chance, list[Planned]()
        size = min(left, chance.randint(self._at_once, self.WAVE_MAX))
        now_s = 0.0
        for _ in range(size):
            now_s = self._first_room(faults, now_s + chance.uniform(0.0, self.GAP_S_MAX), self._at_once)
            kind = self._deal(faults)
            if kind is None:
                break
            if kind.takes in (Takes.PROCESS, Takes.EVERY_PROCESS):
                room = self._nodes if kind.takes is Takes.PROCESS else 1
                now_s = self._first_room([each for each in faults if _takes_process(each)], now_s, room)
            # A fault that takes every process leaves none for others.
            whole = [each for each in faults if each.kind.takes is Takes.EVERY_PROCESS]
            if whole and kind.takes is Takes.PROCESS:
                now_s = self._first_room(whole, now_s, 1)
            self._number += 1
            ends_s = now_s + chance.uniform(*kind.lasts_s)
            faults.append(Planned(self._number, kind, now_s, ends_s, chance.getrandbits(32)))
        return Wave(tuple(faults))

    @staticmethod
    def _first_room(faults: Sequence[Planned], at_s: float, room: int) -> float:
        """The first instant from `at_s` on at which fewer than `room` of these last."""
        while len(lasting := [each.ends_s for each in faults if each.begins_s <= at_s < each.ends_s]) >= room:
            at_s = min(lasting)
        return at_s

    def _deal(self, wave: Sequence[Planned]) -> Kind | None:
        """The next card that the budget of this wave allows; None when all that are left have to wait for the next."""
        if not self._deck:
            self._deck = self._chance.sample(self._kinds, len(self._kinds))
        for index, kind in enumerate(self._deck):
            if self._affordable(kind, wave):
                return self._deck.pop(index)
        return None

    def _affordable(self, kind: Kind, wave: Sequence[Planned]) -> bool:
        """Whether as many may forget, counting everybody who ends without a stop, once somebody really forgets."""
        crashes = [each.kind for each in wave if each.kind.loses or each.kind.crashes]
        if kind.loses or kind.crashes:
            crashes.append(kind)
        return not any(each.loses for each in crashes) or len(crashes) <= self._losses_max


def _takes_process(fault: Planned) -> bool:
    return fault.kind.takes in (Takes.PROCESS, Takes.EVERY_PROCESS)
