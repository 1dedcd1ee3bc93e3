"""range: for each topic by itself, consecutive partitions to the members in order; the first get one more.

With racks (KIP-881) the partitions that have a replica in a member's rack go to such a member first, within the same
shares; topics with equal members and partition counts keep equal partitions together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from penstock.client.consumer.group.assignors.subscription import GroupTopics, Remembered, Subscription, member_order
from penstock.model.ids import TopicPartition


class RangeAssignor:
    name: ClassVar[str] = "range"
    cooperative: ClassVar[bool] = False

    def user_data(self, last: Remembered) -> bytes | None:
        return None

    def assign(self, topics: GroupTopics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        order = member_order(members)
        dealt = [
            _Topic(name, racks, [member_id for member_id in order if name in members[member_id].topics], members)
            for name, racks in topics.items()
            if racks
        ]
        with_racks = any(topic.wants_racks for topic in dealt)
        if with_racks:
            _deal_by_rack(dealt, assigned)
        for topic in dealt:
            topic.deal(assigned)
        if with_racks:
            for partitions in assigned.values():
                partitions.sort()
        return assigned


class _Topic:
    """One topic while it is dealt out: who may have it, what is left, how much everybody still gets."""

    def __init__(
        self, name: str, racks: Sequence[frozenset[str]], consumers: list[str], members: Mapping[str, Subscription]
    ) -> None:
        self.name = name
        self.racks = racks
        self.consumers = consumers
        self.rack_of = {member_id: members[member_id].rack for member_id in consumers}
        self._left = dict.fromkeys(range(len(racks)))
        self._count = dict.fromkeys(consumers, 0)
        self._share, self._extras = divmod(len(racks), len(consumers)) if consumers else (0, 0)
        everywhere = frozenset().union(*racks)
        present = {rack for rack in self.rack_of.values() if rack is not None}
        self.wants_racks = not present.isdisjoint(everywhere) and any(there != everywhere for there in racks)

    def matches(self, member_id: str, partition: int) -> bool:
        rack = self.rack_of[member_id]
        return rack is None or rack in self.racks[partition]

    def room(self, member_id: str) -> int:
        return max(self._share + (self._extras > 0) - self._count[member_id], 0)

    def give(self, member_id: str, partitions: list[int], assigned: dict[str, list[TopicPartition]]) -> None:
        for partition in partitions:
            del self._left[partition]
            assigned[member_id].append(TopicPartition(self.name, partition))
        self._count[member_id] += len(partitions)
        if self._count[member_id] > self._share:
            self._extras -= 1

    def deal(self, assigned: dict[str, list[TopicPartition]], fits: Callable[[str, int], bool] | None = None) -> None:
        for member_id in self.consumers:
            fitting = [partition for partition in self._left if fits is None or fits(member_id, partition)]
            chosen = fitting[: self.room(member_id)]
            if chosen:
                self.give(member_id, chosen, assigned)


def _deal_by_rack(dealt: list[_Topic], assigned: dict[str, list[TopicPartition]]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in dealt:
        # Topics whose consumers name no rack are not counted by their partitions: they are alike among themselves.
        partitions = len(topic.racks) if any(topic.rack_of.values()) else 0
        alike.setdefault((tuple(topic.consumers), partitions), []).append(topic)
    for (consumers, partitions), group in alike.items():
        if len(group) > 1:
            _deal_together(consumers, partitions, group, assigned)
        elif group[0].wants_racks:
            group[0].deal(assigned, group[0].matches)


def _deal_together(
    consumers: tuple[str, ...], partitions: int, group: list[_Topic], assigned: dict[str, list[TopicPartition]]
) -> None:
    """Partition n of all these topics goes to one member, in whose rack they all are."""
    remaining = list(consumers)
    for partition in range(partitions):
        for member_id in remaining:
            if all(topic.matches(member_id, partition) and topic.room(member_id) for topic in group):
                for topic in group:
                    topic.give(member_id, [partition], assigned)
                if not any(topic.room(member_id) for topic in group):
                    remaining.remove(member_id)
                break
