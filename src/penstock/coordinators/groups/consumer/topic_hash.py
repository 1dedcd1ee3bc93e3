"""The hash of a group's subscribed topics, by which the coordinator sees that one of them has changed.

It is stored in the group's record, so it is Kafka's to the bit: XXH3 over the little-endian fields of each topic, then
over the hashes of the topics in the order of their names. Topics that do not exist do not count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import xxhash

from penstock.metadata.entities import TopicImage
from penstock.metadata.image import ClusterImage

_FORMAT_OF_HASH = 0


def group_hash(topics: Iterable[str], image: ClusterImage, known: dict[str, int]) -> int:
    """The hash for a group that subscribes to `topics`. `known` keeps the hashes of topics between calls."""
    hashes = []
    for name in sorted(topics):
        topic = image.topic(name)
        if topic is None:
            continue
        found = known.get(name)
        if found is None:
            found = known[name] = topic_hash(topic, image)
        hashes.append(found)
    if not hashes:
        return 0
    return _signed(struct.pack(f"<{len(hashes)}q", *hashes))


def topic_hash(topic: TopicImage, image: ClusterImage) -> int:
    """Covers id, name, partition count and the racks of every partition's replicas."""
    parts = [struct.pack("<b", _FORMAT_OF_HASH), topic.id[7::-1], topic.id[:7:-1], _text(topic.name)]
    racks = {int(broker.id): broker.rack for broker in image.brokers.values() if broker.rack is not None}
    count = len(topic.partitions)
    parts.append(struct.pack("<i", count))
    if not racks:
        parts.append(struct.pack(f"<{count}i", *range(count)))
        return _signed(b"".join(parts))
    for number, partition in enumerate(topic.partitions):
        parts.append(struct.pack("<i", number))
        for rack in sorted(racks[replica] for replica in partition.replicas if replica in racks):
            parts.append(struct.pack("<i", _units(rack)))
            parts.append(_text(rack))
    return _signed(b"".join(parts))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + struct.pack("<i", _units(text))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _signed(data: bytes) -> int:
    hashed = xxhash.xxh3_64_intdigest(data)
    return hashed - (1 << 64) if hashed >> 63 else hashed
