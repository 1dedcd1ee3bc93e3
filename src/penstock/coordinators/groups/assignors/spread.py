"""Spreads partitions over members whose subscriptions differ, as evenly as the subscriptions allow.

Members keep what they had; free partitions go to whoever has least; then partitions move, directly or along chains of
members, as long as a move makes two loads more equal. When no chain leads from a member to one that has two fewer,
no assignment is more even.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from penstock.coordinators.groups.assignors.subscriber import Subscriber, Target
from penstock.model.ids import Uuid

# One pass over the topics nearly always settles what direct moves can settle; chains do the rest.
_PASSES_MAX = 4


def assign_mixed(members: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> dict[str, Target]:
    """Partitions by member id. `members` come in the order in which ties are decided."""
    spread = _Spread(members, partitions)
    spread.place_free(partitions)
    for _ in range(_PASSES_MAX):
        if not spread.even_out_topics():
            break
    spread.follow_chains()
    return spread.targets(members)


class _Spread:
    """`held[topic][member]` are partitions, `loads[member]` their number; members go by their position."""

    def __init__(self, members: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> None:
        self.loads = [0] * len(members)
        self.subscribers: dict[Uuid, list[int]] = {}
        self.held: dict[Uuid, dict[int, list[int]]] = {topic: {} for topic in sorted(partitions)}
        self.topics: list[set[Uuid]] = [set() for _ in members]
        self._taken: dict[Uuid, set[int]] = {topic: set() for topic in partitions}
        for position, member in enumerate(members):
            for topic in member.topics:
                self.subscribers.setdefault(topic, []).append(position)
            for topic, numbers in member.owned.items():
                if topic in member.topics:
                    self._keep(position, topic, numbers, partitions[topic])

    def _keep(self, position: int, topic: Uuid, numbers: frozenset[int], count: int) -> None:
        kept = [number for number in sorted(numbers) if number < count and number not in self._taken[topic]]
        if kept:
            self._taken[topic].update(kept)
            self.held[topic][position] = kept
            self.topics[position].add(topic)
            self.loads[position] += len(kept)

    def place_free(self, partitions: Mapping[Uuid, int]) -> None:
        """Gives every partition without an owner to the least loaded subscriber, scarce subscribers first."""
        for topic in sorted(self.subscribers, key=lambda topic: (len(self.subscribers[topic]), topic)):
            free = [number for number in range(partitions[topic]) if number not in self._taken[topic]]
            if not free:
                continue
            heap = [(self.loads[position], position) for position in self.subscribers[topic]]
            heapify(heap)
            for number in free:
                load, position = heap[0]
                self._give(position, topic, number)
                heapreplace(heap, (load + 1, position))

    def _give(self, position: int, topic: Uuid, number: int) -> None:
        self.held[topic].setdefault(position, []).append(number)
        self.topics[position].add(topic)
        self.loads[position] += 1

    def _move(self, topic: Uuid, giver: int, taker: int) -> None:
        numbers = self.held[topic][giver]
        self._give(taker, topic, numbers.pop())
        self.loads[giver] -= 1
        if not numbers:
            del self.held[topic][giver]
            self.topics[giver].discard(topic)

    def even_out_topics(self) -> bool:
        """Moves partitions from the most to the least loaded members of each topic; whether any moved."""
        moved = False
        for topic, holders in self.held.items():
            if len(self.subscribers.get(topic, ())) < 2:
                continue
            givers = [(-self.loads[position], position) for position in holders]
            takers = [(self.loads[position], position) for position in self.subscribers[topic]]
            heapify(givers)
            heapify(takers)
            while givers and -givers[0][0] - takers[0][0] >= 2:
                moved |= self._even_out_one(topic, givers, takers)
        return moved

    def _even_out_one(self, topic: Uuid, givers: list[tuple[int, int]], takers: list[tuple[int, int]]) -> bool:
        """One move, or an entry of either heap brought up to date; whether it moved."""
        load, giver = givers[0]
        if -load != self.loads[giver] or giver not in self.held[topic]:
            heappop(givers)
            if giver in self.held[topic]:
                heappush(givers, (-self.loads[giver], giver))
            return False
        least, taker = takers[0]
        if least != self.loads[taker]:
            heapreplace(takers, (self.loads[taker], taker))
            return False
        if taker not in self.held[topic]:
            heappush(givers, (-self.loads[taker] - 1, taker))
        self._move(topic, giver, taker)
        heapreplace(takers, (self.loads[taker], taker))
        return True

    def follow_chains(self) -> None:
        """Finds chains of moves that end two below where they begin, from the most loaded members down."""
        settled: set[int] = set()
        heap = [(-load, position) for position, load in enumerate(self.loads)]
        heapify(heap)
        while heap:
            load, position = heappop(heap)
            if position in settled or -load != self.loads[position]:
                continue  # whoever gained or gave has a newer entry
            came_by, end = self._chain_from(position, settled)
            if end is None:
                # Whatever is reached from here has at most one less: no later, lighter start gains by passing through.
                settled.update(came_by)
                continue
            gained = end
            while end != position:
                giver, topic = came_by[end]
                self._move(topic, giver, end)
                end = giver
            # Both, so that the heaviest always comes first: what a lighter start settles is closed to heavier ones.
            heappush(heap, (-self.loads[position], position))
            heappush(heap, (-self.loads[gained], gained))

    def _chain_from(self, start: int, settled: set[int]) -> tuple[dict[int, tuple[int, Uuid]], int | None]:
        """How each member was reached, and the first that has at least two fewer than `start`."""
        enough = self.loads[start] - 2
        came_by: dict[int, tuple[int, Uuid]] = {start: (start, Uuid(b""))}
        seen: set[Uuid] = set()
        frontier = [start]
        while frontier:
            following: list[int] = []
            for giver in frontier:
                for topic in sorted(self.topics[giver] - seen):
                    seen.add(topic)
                    for taker in self.subscribers[topic]:
                        if taker in came_by or taker in settled:
                            continue
                        came_by[taker] = (giver, topic)
                        if self.loads[taker] <= enough:
                            return came_by, taker
                        following.append(taker)
            frontier = following
        return came_by, None

    def targets(self, members: Sequence[Subscriber]) -> dict[str, Target]:
        found: dict[str, dict[Uuid, frozenset[int]]] = {member.id: {} for member in members}
        for topic, holders in self.held.items():
            for position, numbers in holders.items():
                found[members[position].id][topic] = frozenset(numbers)
        return dict(found)
