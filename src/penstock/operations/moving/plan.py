"""Plans for where replicas should lie: pure, from where they lie now.

`even_out` spreads replicas and leaders over brokers, `evacuate` empties some of them. Both move as few replicas as that
takes: a replica that moves is a log that is copied. Replicas of a partition stay in different places (racks, else
hosts) as far as there are enough of them. The same question always gets the same answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition
from penstock.model.units import count

Placement = dict[TopicPartition, tuple[int, ...]]
"""The replicas of each partition, the preferred leader first."""


class CannotPlace(PenstockError):
    """The brokers that are to hold the replicas are too few."""


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one partition."""

    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def adding(self) -> tuple[int, ...]:
        """The brokers that have to copy it."""
        return tuple(node for node in self.after if node not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(node for node in self.before if node not in self.after)


def moves(before: Mapping[TopicPartition, Sequence[int]], after: Mapping[TopicPartition, Sequence[int]]) -> list[Move]:
    """What differs, by partition; a new order of the same replicas is a move that copies nothing."""
    return [
        Move(item, tuple(before[item]), tuple(nodes))
        for item, nodes in sorted(after.items())
        if tuple(before[item]) != tuple(nodes)
    ]


def even_out(placement: Mapping[TopicPartition, Sequence[int]], places: Mapping[int, str]) -> list[Move]:
    """Spreads replicas evenly over the brokers of `places` (with where each stands), then preferred leaders."""
    board = _Board(placement, places)
    board.leave_others()
    board.part_places()
    board.level_replicas()
    board.level_leaders()
    return moves(placement, board.placement())


def evacuate(
    placement: Mapping[TopicPartition, Sequence[int]], places: Mapping[int, str], leaving: Iterable[int]
) -> list[Move]:
    """Takes every replica from the brokers that are leaving to the others of `places`; all else stays."""
    gone = set(leaving)
    board = _Board(placement, {node: place for node, place in places.items() if node not in gone}, gone)
    board.leave_others()
    return moves(placement, board.placement())


class _Board:
    """A placement that is being changed, with the counts that its changes go by."""

    def __init__(
        self,
        placement: Mapping[TopicPartition, Sequence[int]],
        places: Mapping[int, str],
        leaving: set[int] | None = None,
    ) -> None:
        """`leaving` are the brokers to be emptied; for None all that are not among `places`."""
        self._replicas = {item: list(placement[item]) for item in sorted(placement)}
        self._places, self._brokers = places, sorted(places)
        self._leaving = leaving
        self._totals = dict.fromkeys(self._brokers, 0)
        self._of_topic: dict[str, dict[int, int]] = {}
        self._partitions: dict[str, list[TopicPartition]] = {}
        for item, nodes in self._replicas.items():
            self._partitions.setdefault(item.topic, []).append(item)
            of_topic = self._of_topic.setdefault(item.topic, dict.fromkeys(self._brokers, 0))
            for node in nodes:
                if node in self._totals:
                    self._totals[node] += 1
                    of_topic[node] += 1

    def placement(self) -> Placement:
        return {item: tuple(nodes) for item, nodes in self._replicas.items()}

    # -- replicas

    def leave_others(self) -> None:
        """Moves what lies on brokers that shall hold nothing to the least laden of those that may."""
        for item, nodes in self._replicas.items():
            for node in [node for node in nodes if self._must_go(node)]:
                self._swap(item, node, self._best_new_home(item, node))

    def part_places(self) -> None:
        """Moves a replica that shares a place with another one of its partition to a place that has none."""
        for item, nodes in self._replicas.items():
            for node in reversed(list(nodes)):
                others = {self._place(other) for other in nodes if other != node}
                free = [
                    other for other in self._brokers if other not in nodes and self._places[other] not in others
                ]  # fmt: skip
                if self._place(node) in others and free:
                    self._swap(item, node, min(free, key=lambda other: self._load(item, other)))

    def level_replicas(self) -> None:
        """Moves replicas from the most to the least laden until no two brokers differ by more than one."""
        while self._level_one():
            pass

    def _level_one(self) -> bool:
        by_load = sorted(self._brokers, key=lambda node: (self._totals[node], node))
        for heavy in reversed(by_load):
            for light in by_load:
                if self._totals[heavy] - self._totals[light] < 2:
                    break
                item = self._best_to_hand_over(heavy, light)
                if item is not None:
                    self._swap(item, heavy, light)
                    return True
        return False

    def _best_to_hand_over(self, heavy: int, light: int) -> TopicPartition | None:
        """A partition of the topic that gains most in evenness; one that loses a place is not handed over."""

        def gain(topic: str) -> int:
            return self._of_topic[topic][heavy] - self._of_topic[topic][light]

        for topic in sorted(self._partitions, key=gain, reverse=True):
            for item in self._partitions[topic]:
                nodes = self._replicas[item]
                if heavy in nodes and light not in nodes and not self._loses_a_place(nodes, heavy, light):
                    return item
        return None

    def _loses_a_place(self, nodes: Sequence[int], heavy: int, light: int) -> bool:
        others = {self._place(node) for node in nodes if node != heavy}
        return self._places[light] in others and self._place(heavy) not in others

    def _best_new_home(self, item: TopicPartition, leaving: int) -> int:
        nodes = self._replicas[item]
        free = [node for node in self._brokers if node not in nodes]
        if not free:
            raise CannotPlace(
                f"partition {item.partition} of topic {item.topic!r} has {count('replica', len(nodes))}, and"
                f" without broker {leaving} there is only {count('broker', len(self._brokers))}: start another first,"
                f" or give the partition fewer replicas (`penstock cluster partitions move`)"
            )
        taken = {self._place(node) for node in nodes if node != leaving}
        return min(free, key=lambda node: (self._places[node] in taken, *self._load(item, node)))

    def _load(self, item: TopicPartition, node: int) -> tuple[int, int, int]:
        return self._totals[node], self._of_topic[item.topic][node], node

    def _must_go(self, node: int) -> bool:
        return node not in self._places if self._leaving is None else node in self._leaving

    def _place(self, node: int) -> str:
        """A broker that is down and about to be left has no place that counts."""
        return self._places.get(node, "")

    def _swap(self, item: TopicPartition, old: int, new: int) -> None:
        nodes = self._replicas[item]
        nodes[nodes.index(old)] = new
        of_topic = self._of_topic[item.topic]
        if old in self._totals:
            self._totals[old] -= 1
            of_topic[old] -= 1
        self._totals[new] += 1
        of_topic[new] += 1

    # -- leaders

    def level_leaders(self) -> None:
        """Makes other replicas the preferred leaders until no two brokers differ by more than one, if that can be."""
        led: dict[int, int] = dict.fromkeys(self._brokers, 0)
        may_pass: dict[tuple[int, int], dict[TopicPartition, None]] = {}
        for item, nodes in self._replicas.items():
            led[nodes[0]] += 1
            for other in nodes[1:]:
                may_pass.setdefault((nodes[0], other), {})[item] = None
        while path := self._path(led, may_pass):
            for giver, taker in pairwise(path):
                self._pass_lead(next(iter(may_pass[giver, taker])), giver, taker, may_pass)
            led[path[0]] -= 1
            led[path[-1]] += 1

    def _path(
        self, led: Mapping[int, int], may_pass: Mapping[tuple[int, int], Mapping[TopicPartition, None]]
    ) -> list[int]:
        """The shortest way on which a lead can be passed from a broker with many to one with two fewer, or nothing."""
        for start in sorted(self._brokers, key=lambda node: (-led[node], node)):
            came_from = {start: start}
            waiting = deque([start])
            while waiting:
                node = waiting.popleft()
                if led[start] - led[node] >= 2:
                    return _way(came_from, node)
                for other in self._brokers:
                    if other not in came_from and may_pass.get((node, other)):
                        came_from[other] = node
                        waiting.append(other)
        return []

    def _pass_lead(
        self,
        item: TopicPartition,
        giver: int,
        taker: int,
        may_pass: dict[tuple[int, int], dict[TopicPartition, None]],
    ) -> None:
        nodes = self._replicas[item]
        for other in nodes[1:]:
            del may_pass[giver, other][item]
        at = nodes.index(taker)
        nodes[0], nodes[at] = taker, giver
        for other in nodes[1:]:
            may_pass.setdefault((taker, other), {})[item] = None


def _way(came_from: Mapping[int, int], end: int) -> list[int]:
    way = [end]
    while came_from[way[-1]] != way[-1]:
        way.append(came_from[way[-1]])
    return way[::-1]
