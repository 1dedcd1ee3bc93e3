"""What members of the classic protocol put into JoinGroup and SyncGroup when they are consumers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final

from penstock.model.ids import Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from penstock.protocol.wire import Malformed

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage

_VERSION: Final = Struct(">h")
_VERSION_MAX: Final = 3


def version_of(data: bytes) -> int:
    """The version that `data` is in, at most the latest we know: newer ones only add to the end. Malformed if cut."""
    if len(data) < _VERSION.size:
        raise Malformed("a consumer's metadata begins with its version")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise Malformed(f"a consumer's metadata of version {version}")
    return min(int(version), _VERSION_MAX)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a member subscribes to and owns. Malformed when it cannot be read."""
    return decode(ConsumerProtocolSubscription, version_of(data), data, _VERSION.size)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a leader gave a member. Malformed when it cannot be read."""
    return decode(ConsumerProtocolAssignment, version_of(data), data, _VERSION.size)[0]


def write_assignment(partitions: Mapping[Uuid, Iterable[int]], version: int, image: ClusterImage) -> bytes:
    """An assignment for a member that reads this version; deleted topics have no name any more and are left out."""
    topics = [
        ConsumerProtocolAssignment.TopicPartition(
            topic=image.topics[topic_id].name, partitions=sorted(partitions[topic_id])
        )
        for topic_id in sorted(partitions)
        if topic_id in image.topics
    ]
    return _VERSION.pack(version) + encode(ConsumerProtocolAssignment(assigned_partitions=topics), version)


def owned_by_id(
    topics: Iterable[ConsumerProtocolSubscription.TopicPartition], image: ClusterImage
) -> list[tuple[Uuid, list[int]]]:
    """Named partitions by topic id; topics that do not exist drop out."""
    return [(image.ids[topic.topic], topic.partitions) for topic in topics if topic.topic in image.ids]
