"""What leaders among the model members do: spread partitions over members, anew or with care."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.ids import TopicPartition
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

VERSION = 2
_HEAD = VERSION.to_bytes(2, "big")

Partitions = frozenset[TopicPartition]


def write_subscription(topics: list[str], owned: Partitions, generation: int) -> bytes:
    said = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=each.topic, partitions=[each.partition])
            for each in sorted(owned)
        ],
        generation_id=generation,
    )
    return _HEAD + encode(said, VERSION)


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    given = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=each.topic, partitions=[each.partition])
            for each in sorted(partitions)
        ]
    )
    return _HEAD + encode(given, VERSION)


def read_assignment(data: bytes) -> Partitions:
    if not data:
        return frozenset()
    given, _ = decode(ConsumerProtocolAssignment, VERSION, data, len(_HEAD))
    return frozenset(
        TopicPartition(topic.topic, index) for topic in given.assigned_partitions for index in topic.partitions
    )


def assign(said: dict[str, bytes], partitions: Partitions, *, cooperative: bool) -> dict[str, Partitions]:
    """Who gets what. Cooperative members keep what they own, and get from others only what those have given up."""
    read = {member: decode(ConsumerProtocolSubscription, VERSION, data, len(_HEAD))[0] for member, data in said.items()}
    members = sorted(read)
    if not cooperative:
        ordered = sorted(partitions)
        return {member: frozenset(ordered[place :: len(members)]) for place, member in enumerate(members)}
    owners = _owners(read)
    target = _balanced(members, partitions, owners)
    return {
        member: frozenset(each for each in target[member] if owners.get(each, member) == member) for member in members
    }


def _owners(read: dict[str, ConsumerProtocolSubscription]) -> dict[TopicPartition, str]:
    """Who owns what; of two who say so, the one that was in the later generation."""
    owners: dict[TopicPartition, str] = {}
    latest: dict[TopicPartition, int] = {}
    for member, subscription in sorted(read.items()):
        for topic in subscription.owned_partitions:
            for index in topic.partitions:
                partition = TopicPartition(topic.topic, index)
                if subscription.generation_id > latest.get(partition, -2):
                    owners[partition], latest[partition] = member, subscription.generation_id
    return owners


def _balanced(
    members: list[str], partitions: Partitions, owners: dict[TopicPartition, str]
) -> dict[str, list[TopicPartition]]:
    quota = -(-len(partitions) // len(members))
    target: dict[str, list[TopicPartition]] = {member: [] for member in members}
    homeless = []
    for partition in sorted(partitions):
        owner = owners.get(partition)
        if owner is not None and len(target[owner]) < quota:
            target[owner].append(partition)
        else:
            homeless.append(partition)
    for partition in homeless:
        poorest = min(members, key=lambda member: (len(target[member]), member))
        target[poorest].append(partition)
    return target
