"""roundrobin: all partitions of all topics in order, one at a time to the members in turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from penstock.client.consumer.group.assignors.subscription import (
    GroupTopics,
    Remembered,
    Subscription,
    java_order,
    member_order,
)
from penstock.model.ids import TopicPartition


class RoundRobinAssignor:
    name: ClassVar[str] = "roundrobin"
    cooperative: ClassVar[bool] = False

    def user_data(self, last: Remembered) -> bytes | None:
        return None

    def assign(self, topics: GroupTopics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        order = member_order(members)
        wanted = {topic for subscription in members.values() for topic in subscription.topics}
        turn = 0
        for topic in sorted(wanted.intersection(topics), key=java_order):
            for partition in range(len(topics[topic])):
                while topic not in members[order[turn]].topics:
                    turn = (turn + 1) % len(order)
                assigned[order[turn]].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(order)
        return assigned
