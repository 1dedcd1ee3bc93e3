"""cooperative-sticky: as sticky, but members keep their partitions while they join, and nothing has two owners.

What changes hands is first taken from its owner and given to nobody; the owner gives it up and joins again, and that
next round deals it out (KIP-429).
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import ClassVar

from penstock.client.consumer.group.assignors.sticky import balance
from penstock.client.consumer.group.assignors.subscription import (
    NO_GENERATION,
    GroupTopics,
    Remembered,
    Subscription,
)
from penstock.model.ids import TopicPartition

_GENERATION = Struct(">i")


class CooperativeStickyAssignor:
    name: ClassVar[str] = "cooperative-sticky"
    cooperative: ClassVar[bool] = True

    def user_data(self, last: Remembered) -> bytes | None:
        return _GENERATION.pack(last.generation)

    def assign(self, topics: GroupTopics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        before = {member_id: Remembered(said.owned, _generation(said)) for member_id, said in members.items()}
        target = balance(topics, members, before)
        owners: dict[TopicPartition, set[str]] = {}
        for member_id, said in members.items():
            for partition in said.owned:
                owners.setdefault(partition, set()).add(member_id)
        nobody: set[str] = set()
        return {
            member_id: [
                partition
                for partition in partitions
                if not owners.get(partition, nobody) or member_id in owners[partition]
            ]
            for member_id, partitions in target.items()
        }


def _generation(said: Subscription) -> int:
    """Members that write an older subscription name their generation in the user data."""
    if said.generation > NO_GENERATION or said.user_data is None or len(said.user_data) < _GENERATION.size:
        return said.generation
    return int(_GENERATION.unpack_from(said.user_data)[0])
