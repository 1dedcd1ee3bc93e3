"""What members tell the leader and what the leader tells them, with their bytes.

The broker carries both unread. Each is preceded by its version; what a newer member wrote is read as the newest
version that we know, because new fields only come at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from penstock.model.ids import TopicPartition
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from penstock.protocol.wire import Malformed

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1
_VERSION = Struct(">h")
_NEWEST = 3

T = TypeVar("T")

GroupTopics: TypeAlias = Mapping[str, Sequence[frozenset[str]]]
"""The racks of each partition's replicas, by topic; the position in the sequence is the partition."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One member as the leader sees it. `owned` holds in generation `generation`, -1 when it names none."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    user_data: bytes | None = None
    rack: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """A member's last assignment; `partitions` None when it never had one."""

    partitions: tuple[TopicPartition, ...] | None = None
    generation: int = NO_GENERATION


class Assignor(Protocol):
    """A strategy. `cooperative` members keep what they have while they join again."""

    name: ClassVar[str]
    cooperative: ClassVar[bool]

    def user_data(self, last: Remembered) -> bytes | None:
        """What a member adds to its subscription for this strategy."""

    def assign(self, topics: GroupTopics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        """Partitions by member id; every member is there. `topics` has only those that exist."""


def java_order(text: str) -> bytes:
    """Sorts strings as Java does, by UTF-16 unit, so that mixed groups agree on names outside of ASCII."""
    return text.encode("utf-16-be", "surrogatepass")


def member_order(members: Mapping[str, Subscription]) -> list[str]:
    """Member ids in the order in which partitions are dealt: static members first, by instance id."""

    def key(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].instance_id
        return instance_id is None, java_order(member_id if instance_id is None else instance_id)

    return sorted(members, key=key)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Sorted, as topics with their partitions."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions, key=lambda tp: (java_order(tp.topic), tp.partition)):
        found.setdefault(topic, []).append(partition)
    return found


def encode_subscription(subscription: Subscription) -> bytes:
    """The metadata of a member in JoinGroup."""
    owned = by_topic(subscription.owned).items()
    said = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics, key=java_order),
        user_data=subscription.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in owned
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _VERSION.pack(_NEWEST) + encode(said, _NEWEST)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """What a member said; `Malformed` when it is no subscription."""
    said = _decode(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(said.topics),
        owned=tuple(
            TopicPartition(owned.topic, number) for owned in said.owned_partitions for number in owned.partitions
        ),
        generation=max(said.generation_id, NO_GENERATION),
        user_data=said.user_data,
        rack=said.rack_id or None,
        instance_id=instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """A member's share in SyncGroup; topics in the order of first mention."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    said = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in topics.items()
        ]
    )
    return _VERSION.pack(_NEWEST) + encode(said, _NEWEST)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """A member's partitions; no bytes at all mean none. `Malformed` when it is no assignment."""
    if not data:
        return ()
    said = _decode(ConsumerProtocolAssignment, data)
    return tuple(
        TopicPartition(topic.topic, number) for topic in said.assigned_partitions for number in topic.partitions
    )


def _decode(cls: type[T], data: bytes) -> T:
    if len(data) < _VERSION.size:
        raise Malformed(f"{cls.__name__} of {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise Malformed(f"{cls.__name__} version {version}")
    for candidate in range(min(version, _NEWEST), -1, -1):
        try:
            return decode(cls, candidate, data, _VERSION.size)[0]
        except Malformed as broken:
            # Some clients name a version and leave out its last fields; what they wrote is in an older one.
            failure = broken
    raise failure
