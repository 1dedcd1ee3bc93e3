"""sticky: as even as the subscriptions allow, and everybody keeps as much as that permits.

Members remember their last assignment in the user data, because they give everything up before they join.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import ClassVar

from penstock.client.consumer.group.assignors.subscription import (
    NO_GENERATION,
    GroupTopics,
    Remembered,
    Subscription,
    by_topic,
    java_order,
)
from penstock.model.ids import TopicPartition
from penstock.protocol.codec import decode, encode
from penstock.protocol.wire import Malformed, array, int32, message, string, struct


@message(kind="data", versions="0-1", flexible="none")
class StickyUserData:
    """What a member had. Version 1 says in which generation; nothing in the bytes says which version it is."""

    previous_assignment: list[TopicAssignment] = array("TopicAssignment")
    generation: int = int32(since=1, default=NO_GENERATION)

    @struct()
    class TopicAssignment:
        topic: str = string()
        partitions: list[int] = array(int32)


class StickyAssignor:
    name: ClassVar[str] = "sticky"
    cooperative: ClassVar[bool] = False

    def user_data(self, last: Remembered) -> bytes | None:
        if last.partitions is None:
            return None
        previous = [
            StickyUserData.TopicAssignment(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(last.partitions).items()
        ]
        return encode(StickyUserData(previous_assignment=previous, generation=last.generation), 1)

    def assign(self, topics: GroupTopics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        return balance(topics, members, {member_id: _read(said.user_data) for member_id, said in members.items()})


def _read(user_data: bytes | None) -> Remembered:
    for version in (1, 0):
        try:
            said, _ = decode(StickyUserData, version, user_data or b"")
        except Malformed:
            continue
        partitions = tuple(
            TopicPartition(topic.topic, number) for topic in said.previous_assignment for number in topic.partitions
        )
        return Remembered(partitions, said.generation)
    return Remembered()


def balance(
    topics: GroupTopics, members: Mapping[str, Subscription], before: Mapping[str, Remembered]
) -> dict[str, list[TopicPartition]]:
    """Keeps what it can, deals what is free to whoever has least, then moves as little as evens it out.

    The result is even: nobody has two partitions more than a member who could take one of them.
    """
    order = sorted(members, key=java_order)
    wants = {member_id: frozenset(members[member_id].topics).intersection(topics) for member_id in order}
    kept = _kept(topics, wants, before)
    shares = _Shares(order, wants, kept)
    for partition, member_id in kept.items():
        shares.give(member_id, partition)
    takers = {topic: [member_id for member_id in order if topic in wants[member_id]] for topic in topics}
    # Topics that few may have go first: the others can still even it out afterwards.
    for topic in sorted(topics, key=lambda name: (len(takers[name]), java_order(name))):
        for number in range(len(topics[topic])):
            partition = TopicPartition(topic, number)
            if partition not in kept and takers[topic]:
                shares.give(min(takers[topic], key=shares.rank), partition)
    while shares.even_out():
        pass
    return {member_id: shares.partitions_of(member_id) for member_id in members}


def _kept(
    topics: GroupTopics, wants: Mapping[str, frozenset[str]], before: Mapping[str, Remembered]
) -> dict[TopicPartition, str]:
    """Who had what and may keep it. The newer generation is right; when two claim one in the same, neither is."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, topics_wanted in wants.items():
        had = before[member_id]
        for partition in dict.fromkeys(had.partitions or ()):
            if partition.topic not in topics_wanted or not 0 <= partition.partition < len(topics[partition.topic]):
                continue
            generation, _ = claims.get(partition, (NO_GENERATION - 1, None))
            if had.generation > generation:
                claims[partition] = (had.generation, member_id)
            elif had.generation == generation:
                claims[partition] = (generation, None)
    return {partition: member_id for partition, (_, member_id) in claims.items() if member_id is not None}


class _Shares:
    """Who has what while it is dealt, members sorted by how much they have.

    What a member had before is held apart from what it got now: the latter moves first.
    """

    def __init__(
        self, order: list[str], wants: Mapping[str, frozenset[str]], kept: Mapping[TopicPartition, str]
    ) -> None:
        self._wants = wants
        self._kept = kept
        self._position = {member_id: position for position, member_id in enumerate(order)}
        self._new: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in order}
        self._old: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in order}
        self._count = dict.fromkeys(order, 0)
        self._sorted = [(0, position, member_id) for position, member_id in enumerate(order)]

    def rank(self, member_id: str) -> tuple[int, int, str]:
        return self._count[member_id], self._position[member_id], member_id

    def give(self, member_id: str, partition: TopicPartition) -> None:
        held = self._old if self._kept.get(partition) == member_id else self._new
        held[member_id].setdefault(partition.topic, []).append(partition.partition)
        self._recount(member_id, 1)

    def partitions_of(self, member_id: str) -> list[TopicPartition]:
        both = (self._old[member_id], self._new[member_id])
        return sorted(TopicPartition(topic, number) for held in both for topic in held for number in held[topic])

    def even_out(self) -> bool:
        """Moves one partition from a member with more to one with less; False when nothing needs to move."""
        most = self._sorted[-1][0] if self._sorted else 0
        for count, _, poor in self._sorted:
            if most < count + 2:
                return False
            for richer_count, _, rich in reversed(self._sorted):
                if richer_count < count + 2:
                    break
                partition = self._take(rich, self._wants[poor])
                if partition is not None:
                    self.give(poor, partition)
                    return True
        return False

    def _take(self, rich: str, wanted: frozenset[str]) -> TopicPartition | None:
        for held in (self._new[rich], self._old[rich]):
            topics = wanted.intersection(held)
            if topics:
                topic = max(topics, key=java_order)
                number = held[topic].pop()
                if not held[topic]:
                    del held[topic]
                self._recount(rich, -1)
                return TopicPartition(topic, number)
        return None

    def _recount(self, member_id: str, by: int) -> None:
        del self._sorted[bisect_left(self._sorted, self.rank(member_id))]
        self._count[member_id] += by
        insort(self._sorted, self.rank(member_id))
